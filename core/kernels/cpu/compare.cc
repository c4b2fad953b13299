#include <cstdint>
#include <memory>
#include <vector>

#include <kolo/core/kernels/cpu/broadcast_kernel.h>
#include <kolo/core/kernels/cpu/element_loops.h>
#include <kolo/core/kernels/cpu/elementwise_kernels.h>
#include <kolo/core/kernels/cpu/parallel_rows.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

using detail::Comparison;

const std::vector<DType> kComparable = {DType::f32,     DType::f64, DType::i32, DType::i64,
                                        DType::boolean, DType::u8,  DType::i8};
const std::vector<DType> kLogical = {DType::boolean};
const std::vector<DType> kReal = {DType::f32, DType::f64};

RegisterKernel comparison(const char* op, Comparison loop) {
  return RegisterKernel(op, "CPU", kComparable, [loop](KernelInit& init) -> std::unique_ptr<Kernel> {
    return std::make_unique<detail::BroadcastKernel>(detail::comparison_loop(loop, init.input_dtype(0)));
  });
}

// Booleans are bytes of 0 or 1, so that logic is the arithmetic of bits.
template <bool kAnd>
void logic(const void* a_memory, std::int64_t a_step, const void* b_memory, std::int64_t b_step,
           void* out_memory, std::int64_t count) {
  const auto* a = static_cast<const std::uint8_t*>(a_memory);
  const auto* b = static_cast<const std::uint8_t*>(b_memory);
  auto* out = static_cast<std::uint8_t*>(out_memory);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint8_t left = a[i * a_step], right = b[i * b_step];
    out[i] = static_cast<std::uint8_t>(kAnd ? left & right : left | right);
  }
}

RegisterKernel logical(const char* op, detail::BinaryLoop loop) {
  return RegisterKernel(op, "CPU", kLogical, [loop](KernelInit&) -> std::unique_ptr<Kernel> {
    return std::make_unique<detail::BroadcastKernel>(loop);
  });
}

void logical_not(KernelContext& context) {
  const auto x = context.input(0).span<bool>();
  const auto y = context.output(0).span<bool>();
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = !x[i];
}

// One of the two operands, as bits: the element type does not matter, only its size.
template <typename Bits>
void select_bits(KernelContext& context) {
  const Tensor& out = context.output(0);
  const auto* condition = context.input(0).data<bool>();
  const auto* a = reinterpret_cast<const Bits*>(context.input(1).raw());
  const auto* b = reinterpret_cast<const Bits*>(context.input(2).raw());
  auto* y = reinterpret_cast<Bits*>(out.raw());
  const auto index = detail::broadcast_index_to(out.shape(), context.input(0).shape(),
                                                context.input(1).shape(), context.input(2).shape());
  const auto [condition_step, a_step, b_step] = index.row_strides();
  const bool dense = condition_step == 1 && a_step == 1 && b_step == 1;
  detail::parallel_rows(index, [&, condition_step = condition_step, a_step = a_step, b_step = b_step](
                                   std::int64_t at, const auto& from, std::int64_t count) {
    const bool* chosen = condition + from[0];
    const Bits *left = a + from[1], *right = b + from[2];
    Bits* to = y + at;
    if (dense)
      for (std::int64_t i = 0; i < count; ++i) to[i] = chosen[i] ? left[i] : right[i];
    else
      for (std::int64_t i = 0; i < count; ++i)
        to[i] = chosen[i * condition_step] ? left[i * a_step] : right[i * b_step];
  });
}

void select(KernelContext& context) {
  switch (size_of(context.output(0).dtype())) {
    case 1: return select_bits<std::uint8_t>(context);
    case 2: return select_bits<std::uint16_t>(context);
    case 4: return select_bits<std::uint32_t>(context);
    default: return select_bits<std::uint64_t>(context);
  }
}

const RegisterKernel comparisons[] = {
    comparison("Equal", Comparison::equal),
    comparison("NotEqual", Comparison::not_equal),
    comparison("Less", Comparison::less),
    comparison("LessEqual", Comparison::less_equal),
    comparison("Greater", Comparison::greater),
    comparison("GreaterEqual", Comparison::greater_equal),
    logical("LogicalAnd", logic<true>),
    logical("LogicalOr", logic<false>),
    RegisterKernel("LogicalNot", "CPU", kLogical, logical_not),
    RegisterKernel("Select", "CPU", {}, select),
    detail::unary_kernel("IsNan", kReal, detail::UnaryOp::is_nan),
    detail::unary_kernel("IsInf", kReal, detail::UnaryOp::is_inf),
    detail::unary_kernel("IsFinite", kReal, detail::UnaryOp::is_finite),
};

}  // namespace
}  // namespace kolo
