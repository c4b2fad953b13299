#include <kolo/core/kernels/cpu/elementwise_kernels.h>

#include <memory>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/broadcast_kernel.h>
#include <kolo/core/kernels/parallel.h>

namespace kolo::detail {
namespace {

class UnaryKernel final : public Kernel {
 public:
  explicit UnaryKernel(UnaryLoop loop) : loop_(loop) {}
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    const auto in_size = static_cast<std::int64_t>(size_of(x.dtype()));
    const auto out_size = static_cast<std::int64_t>(size_of(y.dtype()));
    parallel_for(x.elements(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      loop_(x.raw() + begin * in_size, y.raw() + begin * out_size, end - begin);
    });
  }

 private:
  UnaryLoop loop_;
};

// A whole number divided by 0 would end the process; a real one is infinite.
class IntegerDivisionKernel final : public Kernel {
 public:
  explicit IntegerDivisionKernel(BinaryLoop loop) : divide_(loop) {}
  void compute(KernelContext& context) override {
    const Tensor& b = context.input(1);
    if (b.dtype() == DType::i32 ? has_zero<std::int32_t>(b) : has_zero<std::int64_t>(b))
      throw InvalidArgumentError("Integer division by zero");
    divide_.compute(context);
  }

 private:
  template <typename T>
  static bool has_zero(const Tensor& tensor) {
    for (const T value : tensor.span<T>())
      if (value == 0) return true;
    return false;
  }
  BroadcastKernel divide_;
};

}  // namespace

RegisterKernel binary_kernel(const char* op, const std::vector<DType>& types, BinaryOp loop) {
  return RegisterKernel(op, "CPU", types, [loop](KernelInit& init) -> std::unique_ptr<Kernel> {
    return std::make_unique<BroadcastKernel>(binary_loop(loop, init.input_dtype(0)));
  });
}

RegisterKernel integer_division_kernel(const char* op, BinaryOp loop) {
  return RegisterKernel(
      op, "CPU", {DType::i32, DType::i64}, [loop](KernelInit& init) -> std::unique_ptr<Kernel> {
        return std::make_unique<IntegerDivisionKernel>(binary_loop(loop, init.input_dtype(0)));
      });
}

RegisterKernel unary_kernel(const char* op, const std::vector<DType>& types, UnaryOp loop) {
  return RegisterKernel(op, "CPU", types, [loop](KernelInit& init) -> std::unique_ptr<Kernel> {
    return std::make_unique<UnaryKernel>(unary_loop(loop, init.input_dtype(0)));
  });
}

}  // namespace kolo::detail
