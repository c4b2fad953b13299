#include <kolo/core/kernels/passed_outputs.h>

#include <algorithm>
#include <cstddef>

namespace kolo {

PassedOutputs::PassedOutputs(const KernelInit& init) {
  for (int i = 0; i < init.num_outputs(); ++i)
    planned_.push_back(init.output_shape(i).is_fully_known() && init.output_dtype(i) != DType::string);
}

void PassedOutputs::pass_on(const KernelContext& context, int output, const Tensor& value) const {
  if (!planned_[output]) context.set_output(output, value.clone());
  else if (context.output(output).raw() != value.raw()) context.output(output).copy_from(value);
}

void PassedOutputs::fill_with_zeros(const KernelContext& context, int output, const Tensor& like) const {
  if (!planned_[output]) return context.set_output(output, Tensor::zeros(like.dtype(), like.shape()));
  std::fill_n(context.output(output).raw(), context.output(output).bytes(), std::byte{0});
}

}  // namespace kolo
