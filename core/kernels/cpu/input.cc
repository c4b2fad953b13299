#include <cstddef>
#include <memory>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/input_internal.h>

namespace kolo {
namespace {

class IteratorNext final : public Kernel {
 public:
  explicit IteratorNext(const KernelInit& init)
      : source_(init.attr<Tensor>("source")), components_(detail::components_of(source_)) {}

  void compute(KernelContext& context) override {
    if (!take()) throw OutOfRangeError("End of sequence");
    check();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const int output = static_cast<int>(i);
      // What has a planned place is copied there; the rest is handed on as it is.
      if (components_[i].shape.is_fully_known() && components_[i].dtype != DType::string)
        context.output(output).copy_from(tensors_[i]);
      else context.set_output(output, tensors_[i]);
    }
  }

 private:
  bool take() {
    detail::HeldSource& held = detail::held(source_);
    MutexLock lock(held.mutex);
    return held.source->next(tensors_);
  }

  void check() const {
    if (tensors_.size() != components_.size())
      throw InvalidArgumentError("an iterator's source gave {} tensors for its {} components",
                                 tensors_.size(), components_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Tensor& tensor = tensors_[i];
      const auto& wanted = components_[i];
      if (tensor.dtype() != wanted.dtype || !tensor.shape().is_compatible_with(wanted.shape))
        throw InvalidArgumentError("component {} of an iterator's source is {} {}; it was announced as {} {}",
                                   i, tensor.dtype(), tensor.shape(), wanted.dtype, wanted.shape);
    }
  }

  Tensor source_;
  std::vector<ElementSource::Component> components_;
  std::vector<Tensor> tensors_;  // kept, so that a source may fill them anew
};

const RegisterKernel iterator_next("IteratorNext", "CPU", {}, make_kernel<IteratorNext>);

}  // namespace

}  // namespace kolo
