#include <cstdint>
#include <limits>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

void put(const Tensor& to, std::size_t at, std::int64_t number) {
  if (to.dtype() == DType::i64) {
    to.data<std::int64_t>()[at] = number;
    return;
  }
  if (number > std::numeric_limits<std::int32_t>::max())
    throw InvalidArgumentError("{} does not fit in i32; ask for i64", number);
  to.data<std::int32_t>()[at] = static_cast<std::int32_t>(number);
}

void shape(KernelContext& context) {
  const auto& dims = context.input(0).shape().dims();
  for (std::size_t axis = 0; axis < dims.size(); ++axis) put(context.output(0), axis, dims[axis]);
}
void size(KernelContext& context) { put(context.output(0), 0, context.input(0).elements()); }
void rank(KernelContext& context) { put(context.output(0), 0, context.input(0).shape().rank()); }

const RegisterKernel kernels[] = {
    {"Shape", "CPU", {}, shape},
    {"Size", "CPU", {}, size},
    {"Rank", "CPU", {}, rank},
};

}  // namespace
}  // namespace kolo
