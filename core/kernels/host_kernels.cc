#include <kolo/core/kernels/host_kernels.h>

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

void put(const Tensor& to, int at, std::int64_t number) {
  if (to.dtype() == DType::i64) {
    to.data<std::int64_t>()[at] = number;
    return;
  }
  if (number > std::numeric_limits<std::int32_t>::max())
    throw InvalidArgumentError("{} does not fit in i32; ask for i64", number);
  to.data<std::int32_t>()[at] = static_cast<std::int32_t>(number);
}

}  // namespace

PlaceholderKernel::PlaceholderKernel(KernelInit& init)
    : message_(fmt::format("You must feed a value for placeholder tensor '{}' with dtype {}", init.node(),
                           tf_name(init.output_dtype(0)))) {
  const Shape shape = init.attr<Shape>("shape");
  if (shape.has_rank() && shape.rank() > 0) message_ += fmt::format(" and shape {}", shape);
}

void PlaceholderKernel::compute(KernelContext&) { throw InvalidArgumentError("{}", message_); }

void shape_kernel(KernelContext& context) {
  const Shape& x = context.input(0).shape();
  for (int axis = 0; axis < x.rank(); ++axis) put(context.output(0), axis, x.dim(axis));
}

void size_kernel(KernelContext& context) { put(context.output(0), 0, context.input(0).elements()); }

void rank_kernel(KernelContext& context) { put(context.output(0), 0, context.input(0).shape().rank()); }

void check_assigned_shape(const KernelContext& context) {
  const Shape& variable = context.variable(0).value.shape();
  const Shape& value = context.input(1).shape();
  if (variable != value)
    throw InvalidArgumentError("Assign requires shapes of both tensors to match. lhs shape= {} rhs shape= {}",
                               variable, value);
}

}  // namespace kolo
