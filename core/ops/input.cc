#include <kolo/core/ops/input.h>

#include <set>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/input_internal.h>

namespace kolo {
namespace {

// A graph from a file may name a source of this process with other inputs.
void check_types(const ShapeContext& c, const std::vector<ElementSource::Component>& components) {
  bool fits = c.num_inputs() == static_cast<int>(components.size());
  for (int i = 0; fits && i < c.num_inputs(); ++i)
    fits = c.dtype(i) == components[static_cast<std::size_t>(i)].dtype;
  if (!fits)
    throw InvalidArgumentError(
        "the iterator has {} inputs; it needs one for each of its source's {} components, of that type",
        c.num_inputs(), components.size());
}

// Attributes have no kind for C++ objects: the attribute "source" is a tensor with the object's address,
// whose buffer owns the object. The inputs stand for the components: scalars of their types, which nobody
// reads.
const RegisterOp iterator_next_op(OpSchema("IteratorNext")
                                      .variadic("types", {}, true)
                                      .required_attr("source", Tensor::scalar<std::int64_t>(0))
                                      .output_per_input()
                                      .shape([](ShapeContext& c) {
                                        const auto source = c.attr<Tensor>("source");
                                        const auto components = detail::components_of(source);
                                        check_types(c, components);
                                        for (int i = 0; i < c.num_inputs(); ++i)
                                          c.set_output(i, components.at(static_cast<std::size_t>(i)).shape);
                                      })
                                      .cpu_only()
                                      .stateful()
                                      .no_gradient());

// The sources that live: a graph from a file may bring any number as an address.
class LiveSources {
 public:
  static LiveSources& instance() {
    static auto* const sources = new LiveSources;  // outlives static graphs
    return *sources;
  }
  void add(const void* source) {
    MutexLock lock(mutex_);
    live_.insert(source);
  }
  void remove(const void* source) {
    MutexLock lock(mutex_);
    live_.erase(source);
  }
  bool contains(const void* source) {
    MutexLock lock(mutex_);
    return live_.count(source) > 0;
  }

 private:
  Mutex mutex_;
  std::set<const void*> live_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace

namespace detail {

Tensor hold(std::shared_ptr<ElementSource> source) {
  const std::shared_ptr<HeldSource> held(new HeldSource(std::move(source)), [](const HeldSource* gone) {
    LiveSources::instance().remove(gone);
    delete gone;
  });
  LiveSources::instance().add(held.get());
  return Tensor(DType::i64, Shape(), std::make_shared<Buffer>(&held->address, sizeof(held->address), held),
                0);
}

HeldSource& held(const Tensor& tensor) {
  auto* const source = reinterpret_cast<HeldSource*>(tensor.value<std::int64_t>());
  if (!LiveSources::instance().contains(source))
    throw InvalidArgumentError(
        "the source of this iterator is not in this process: a saved graph does not hold it; feed the "
        "iterator's "
        "tensors, or map them to others at import");
  return *source;
}

std::vector<ElementSource::Component> components_of(const Tensor& tensor) {
  HeldSource& source = held(tensor);
  MutexLock lock(source.mutex);
  return source.source->components();
}

}  // namespace detail

Outputs make_iterator(const Scope& s, std::shared_ptr<ElementSource> source) {
  if (source == nullptr) throw InvalidArgumentError("make_iterator: the source is empty");
  const auto components = source->components();
  if (components.empty())
    throw InvalidArgumentError(
        "make_iterator: the source has no components; an element must have at least one tensor");
  const Scope scope = s.name_scope("iterator");
  Outputs types;
  for (const auto& component : components)
    types.push_back(constant(scope.named("type"), Tensor::zeros(component.dtype, Shape())));
  const Operation next =
      scope.named("next").add("IteratorNext", types, {{"source", detail::hold(std::move(source))}});
  Outputs outputs;
  for (int i = 0; i < next.node->num_outputs(); ++i) outputs.push_back(next.output(i));
  return outputs;
}

}  // namespace kolo
