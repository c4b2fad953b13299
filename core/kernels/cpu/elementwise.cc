#include <memory>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/element_loops.h>
#include <kolo/core/kernels/cpu/elementwise_kernels.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

using detail::binary_kernel;
using detail::BinaryOp;
using detail::unary_kernel;
using detail::UnaryOp;

const std::vector<DType> kArithmetic = {DType::f32, DType::f64, DType::i32, DType::i64};
const std::vector<DType> kReal = {DType::f32, DType::f64};

const RegisterKernel kernels[] = {
    binary_kernel("Add", kArithmetic, BinaryOp::add),
    binary_kernel("Sub", kArithmetic, BinaryOp::sub),
    binary_kernel("Mul", kArithmetic, BinaryOp::mul),
    binary_kernel("Div", kReal, BinaryOp::div),
    detail::integer_division_kernel("Div", BinaryOp::div),
    binary_kernel("Maximum", kArithmetic, BinaryOp::maximum),
    binary_kernel("Minimum", kArithmetic, BinaryOp::minimum),
    binary_kernel("Pow", kReal, BinaryOp::pow),
    binary_kernel("TanhGrad", kReal, BinaryOp::tanh_grad),
    binary_kernel("SigmoidGrad", kReal, BinaryOp::sigmoid_grad),
    binary_kernel("ReluGrad", kReal, BinaryOp::relu_grad),
    unary_kernel("Neg", kArithmetic, UnaryOp::neg),
    unary_kernel("Abs", kArithmetic, UnaryOp::abs),
    unary_kernel("Sign", kArithmetic, UnaryOp::sign),
    unary_kernel("Square", kArithmetic, UnaryOp::square),
    unary_kernel("Sqrt", kReal, UnaryOp::sqrt),
    unary_kernel("Rsqrt", kReal, UnaryOp::rsqrt),
    unary_kernel("Exp", kReal, UnaryOp::exp),
    unary_kernel("Log", kReal, UnaryOp::log),
    unary_kernel("Tanh", kReal, UnaryOp::tanh),
    unary_kernel("Sigmoid", kReal, UnaryOp::sigmoid),
    unary_kernel("Relu", kArithmetic, UnaryOp::relu),
};

// Sums two inputs at a time into the output, piece by piece, so that the output's piece stays in the cache
// meanwhile.
class AddNKernel final : public Kernel {
 public:
  explicit AddNKernel(DType type) : add_(detail::binary_loop(BinaryOp::add, type)) {}
  void compute(KernelContext& context) override {
    const Tensor& y = context.output(0);
    for (int i = 1; i < context.num_inputs(); ++i)
      if (context.input(i).shape() != y.shape())
        throw InvalidArgumentError("AddN: input 0 is {} and input {} is {}; all must have one shape",
                                   context.input(0).shape(), i, context.input(i).shape());
    if (context.num_inputs() == 1) {
      if (y.raw() != context.input(0).raw()) y.copy_from(context.input(0));
      return;
    }
    parallel_for(y.elements(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; begin += kPiece) add_piece(context, begin, std::min(kPiece, end - begin));
    });
  }

 private:
  static constexpr std::int64_t kPiece = 4096;
  void add_piece(const KernelContext& context, std::int64_t begin, std::int64_t count) const {
    const Tensor& y = context.output(0);
    const auto at = begin * static_cast<std::int64_t>(size_of(y.dtype()));
    add_(context.input(0).raw() + at, 1, context.input(1).raw() + at, 1, y.raw() + at, count);
    for (int i = 2; i < context.num_inputs(); ++i)
      add_(y.raw() + at, 1, context.input(i).raw() + at, 1, y.raw() + at, count);
  }
  detail::BinaryLoop add_;
};

const RegisterKernel add_n("AddN", "CPU", kArithmetic, [](KernelInit& init) -> std::unique_ptr<Kernel> {
  return std::make_unique<AddNKernel>(init.input_dtype(0));
});

}  // namespace
}  // namespace kolo
