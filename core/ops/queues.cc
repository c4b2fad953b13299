#include <kolo/core/ops/queues.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/queues_internal.h>

namespace kolo {
namespace detail {

AttrMap attrs_of(const ElementSpec& spec) {
  std::vector<std::string> types;
  std::vector<std::int64_t> shapes;
  for (const DType type : spec.types) types.emplace_back(name(type));
  for (const Shape& shape : spec.shapes) {
    shapes.push_back(shape.rank());
    shapes.insert(shapes.end(), shape.dims().begin(), shape.dims().end());
  }
  return {{"component_types", std::move(types)}, {"shapes", std::move(shapes)}};
}

ElementSpec element_spec(const std::vector<std::string>& component_types,
                         const std::vector<std::int64_t>& shapes) {
  ElementSpec spec;
  for (const std::string& type : component_types) spec.types.push_back(dtype_from_name(type));
  if (spec.types.empty()) throw InvalidArgumentError("the elements of a queue have at least one component");
  for (std::size_t next = 0; next < shapes.size();) {
    const std::int64_t rank = shapes[next++];
    if (rank < 0 || rank > static_cast<std::int64_t>(shapes.size() - next))
      throw InvalidArgumentError("the shapes of a queue's components end within a shape");
    const auto first = shapes.begin() + static_cast<std::ptrdiff_t>(next);
    spec.shapes.emplace_back(std::vector<std::int64_t>(first, first + rank));
    next += static_cast<std::size_t>(rank);
    if (!spec.shapes.back().is_fully_known())
      throw InvalidArgumentError("All shapes must be fully defined: {}", spec.shapes.back());
  }
  if (!spec.shapes.empty() && spec.shapes.size() != spec.types.size())
    throw InvalidArgumentError("Queue shapes must have the same length as dtypes, got {} for {}",
                               spec.shapes.size(), spec.types.size());
  return spec;
}

bool holds_numbers(const ElementSpec& spec) {
  return spec == ElementSpec{.types = {DType::i64}, .shapes = {Shape()}};
}

void check_tuple(const ElementSpec& spec, const std::vector<DType>& types, const std::vector<Shape>& shapes,
                 bool many) {
  if (types.size() != spec.types.size())
    throw InvalidArgumentError("Wrong number of components in tuple. Expected {}, got {}", spec.types.size(),
                               types.size());
  Shape rows{-1};
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] != spec.types[i])
      throw InvalidArgumentError("Type mismatch in tuple component {}. Expected {}, got {}", i,
                                 tf_name(spec.types[i]), tf_name(types[i]));
    Shape expected = spec.shapes.empty() ? Shape::unknown_rank() : spec.shapes[i];
    if (many && expected.has_rank()) {
      std::vector<std::int64_t> dims = expected.dims();
      dims.insert(dims.begin(), rows.dim(0));
      expected = Shape(std::move(dims));
    }
    const bool has_rows = !many || !shapes[i].has_rank() || shapes[i].rank() > 0;
    if (!has_rows || !shapes[i].is_compatible_with(expected))
      throw InvalidArgumentError("Shape mismatch in tuple component {}. Expected {}, got {}", i, expected,
                                 shapes[i]);
    if (!many || !shapes[i].has_rank()) continue;
    const Shape these{shapes[i].dim(0)};
    if (!these.is_compatible_with(rows))
      throw InvalidArgumentError(
          "All input tensors must have the same size in the 0th dimension. Component {} has {}, and should "
          "have {}",
          i, these.dim(0), rows.dim(0));
    rows = rows.merged_with(these);
  }
}

}  // namespace detail

namespace {

using Names = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;

constexpr char kQueue[] = "FIFOQueue";

detail::ElementSpec spec_of(const ShapeContext& c) {
  return detail::element_spec(c.attr<Names>("component_types"), c.attr<Numbers>("shapes"));
}

OpSchema on_queue(const char* op) {
  OpSchema schema(op);
  schema.input("handle", {DType::string}).handle_of({kQueue}).stateful().cpu_only().no_gradient();
  return schema;
}

OpSchema with_elements(OpSchema schema) {
  return schema.required_attr("component_types", Names()).attr("shapes", Numbers());
}

const RegisterOp fifo_queue_op(
    with_elements(OpSchema(kQueue)).attr("capacity", -1).contained().shape([](ShapeContext& c) {
      spec_of(c);
      const auto capacity = c.attr<std::int64_t>("capacity");
      if (capacity < 1 && capacity != -1)
        throw InvalidArgumentError("the capacity of a queue is {}; it must be at least 1, or -1 for any",
                                   capacity);
      c.set_output(0, Shape());
    }));

const RegisterOp enqueue_op(on_queue("QueueEnqueue").variadic("components", {}, true));
const RegisterOp enqueue_many_op(on_queue("QueueEnqueueMany").variadic("components", {}, true));

// What stands behind the handle.
void check_scalars(const ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i)
    if (!c.input(i).is_compatible_with(Shape()))
      throw InvalidArgumentError("input {} has the shape {}; it must be a scalar", i, c.input(i));
}

const RegisterOp dequeue_op(with_elements(on_queue("QueueDequeue"))
                                .output("components", "component_types")
                                .shape([](ShapeContext& c) {
                                  const auto spec = spec_of(c);
                                  for (std::size_t i = 0; i < spec.shapes.size(); ++i)
                                    c.set_output(static_cast<int>(i), spec.shapes[i]);
                                }));

// rows: of the outputs; −1 where the run tells.
void set_rows(ShapeContext& c, const char* op, bool exactly) {
  const auto spec = spec_of(c);
  const auto n = c.attr<std::int64_t>("n");
  if (n < 0) throw InvalidArgumentError("{} requested {} < 0 elements", op, n);
  if (spec.shapes.empty())
    throw InvalidArgumentError(
        "FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified shapes.");
  for (std::size_t i = 0; i < spec.shapes.size(); ++i) {
    Numbers dims = spec.shapes[i].dims();
    dims.insert(dims.begin(), exactly ? n : -1);
    c.set_output(static_cast<int>(i), Shape(std::move(dims)));
  }
}

const RegisterOp dequeue_newest_op(with_elements(on_queue("QueueDequeueNewest"))
                                       .input("than", {DType::i64})
                                       .input("generation", {DType::i64})
                                       .output("number", DType::i64)
                                       .shape([](ShapeContext& c) {
                                         check_scalars(c);
                                         if (!detail::holds_numbers(spec_of(c)))
                                           throw InvalidArgumentError(
                                               "the elements of the queue must each be one i64 scalar");
                                         c.set_output(0, Shape());
                                       }));
const RegisterOp dequeue_many_op(with_elements(on_queue("QueueDequeueMany"))
                                     .required_attr("n", 0)
                                     .output("components", "component_types")
                                     .shape([](ShapeContext& c) { set_rows(c, "DequeueManyOp", true); }));
const RegisterOp dequeue_up_to_op(with_elements(on_queue("QueueDequeueUpTo"))
                                      .required_attr("n", 0)
                                      .output("components", "component_types")
                                      .shape([](ShapeContext& c) { set_rows(c, "DequeueUpToOp", false); }));

const RegisterOp close_op(on_queue("QueueClose").attr("cancel_pending_enqueues", false));
// generation: at most one.
const RegisterOp queue_reset_op(on_queue("QueueReset")
                                    .variadic("generation", {DType::i64})
                                    .required_attr("text", "")
                                    .shape([](ShapeContext& c) {
                                      check_scalars(c);
                                      if (c.num_inputs() > 2)
                                        throw InvalidArgumentError("a queue is reset to {} generations",
                                                                   c.num_inputs() - 1);
                                    }));
const RegisterOp generation_op(on_queue("QueueGeneration").output("generation", DType::i64));
const RegisterOp size_op(on_queue("QueueSize").output("size", DType::i32));
const RegisterOp is_closed_op(on_queue("QueueIsClosed").output("is_closed", DType::boolean));

Operation add_enqueue(const Scope& s, const char* op, const FIFOQueue& queue, const Outputs& components,
                      bool many) {
  std::vector<DType> types;
  std::vector<Shape> shapes;
  Outputs inputs = {queue.handle()};
  for (const Output& component : components) {
    if (!component) throw InvalidArgumentError("{}: component {} is empty", op, types.size());
    types.push_back(component.dtype());
    shapes.push_back(component.shape());
    inputs.push_back(component);
  }
  detail::check_tuple({queue.types(), queue.shapes()}, types, shapes, many);
  return s.colocate_with(queue.handle()).add(op, inputs);
}

Outputs add_dequeue(const Scope& s, const char* op, const FIFOQueue& queue, AttrMap attrs) {
  attrs.merge(detail::attrs_of({queue.types(), queue.shapes()}));
  const Operation taken = s.colocate_with(queue.handle()).add(op, {queue.handle()}, std::move(attrs));
  Outputs components;
  for (int i = 0; i < taken.node->num_outputs(); ++i) components.push_back(taken.output(i));
  return components;
}

}  // namespace

FIFOQueue::FIFOQueue(const Scope& s, std::vector<DType> types, FIFOQueueOptions options)
    : types_(std::move(types)), shapes_(std::move(options.shapes)) {
  for (const Shape& shape : shapes_)
    if (!shape.is_fully_known()) throw InvalidArgumentError("All shapes must be fully defined: {}", shape);
  AttrMap attrs = detail::attrs_of({types_, shapes_});
  attrs.emplace("capacity", options.capacity);
  attrs.emplace("shared_name", std::move(options.shared_name));
  handle_ = s.add(kQueue, {}, std::move(attrs));
}

Operation enqueue(const Scope& s, const FIFOQueue& queue, const Outputs& components) {
  return add_enqueue(s, "QueueEnqueue", queue, components, false);
}
Operation enqueue_many(const Scope& s, const FIFOQueue& queue, const Outputs& components) {
  return add_enqueue(s, "QueueEnqueueMany", queue, components, true);
}
Outputs dequeue(const Scope& s, const FIFOQueue& queue) { return add_dequeue(s, "QueueDequeue", queue, {}); }
Output dequeue_newest(const Scope& s, const FIFOQueue& queue, Output than, Output generation) {
  if (!detail::holds_numbers({queue.types(), queue.shapes()}))
    throw InvalidArgumentError("dequeue_newest: {} is not a queue of i64 scalars", queue.name());
  return s.colocate_with(queue.handle())
      .add("QueueDequeueNewest", {queue.handle(), than, generation},
           detail::attrs_of({queue.types(), queue.shapes()}));
}
Outputs dequeue_many(const Scope& s, const FIFOQueue& queue, std::int64_t n) {
  return add_dequeue(s, "QueueDequeueMany", queue, {{"n", n}});
}
Outputs dequeue_up_to(const Scope& s, const FIFOQueue& queue, std::int64_t n) {
  return add_dequeue(s, "QueueDequeueUpTo", queue, {{"n", n}});
}
Operation close_queue(const Scope& s, const FIFOQueue& queue, bool cancel_pending) {
  return s.colocate_with(queue.handle())
      .add("QueueClose", {queue.handle()}, {{"cancel_pending_enqueues", cancel_pending}});
}
Operation reset_queue(const Scope& s, const FIFOQueue& queue, const std::string& text, Output generation) {
  Outputs inputs = {queue.handle()};
  if (generation) inputs.push_back(generation);
  return s.colocate_with(queue.handle()).add("QueueReset", inputs, {{"text", text}});
}
Output queue_generation(const Scope& s, const FIFOQueue& queue) {
  return s.colocate_with(queue.handle()).add("QueueGeneration", {queue.handle()});
}
Output queue_size(const Scope& s, const FIFOQueue& queue) {
  return s.colocate_with(queue.handle()).add("QueueSize", {queue.handle()});
}
Output queue_is_closed(const Scope& s, const FIFOQueue& queue) {
  return s.colocate_with(queue.handle()).add("QueueIsClosed", {queue.handle()});
}

}  // namespace kolo
