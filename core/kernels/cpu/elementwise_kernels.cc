// The kernels that are one loop over elements: those of elements/table.h.
#include <memory>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/broadcast_kernel.h>
#include <kolo/core/kernels/cpu/loops/element_loops.h>
#include <kolo/core/kernels/elements/table.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>

namespace kolo {
namespace {

using detail::binary_loop;
using detail::BinaryLoop;
using detail::BroadcastKernel;
using detail::unary_loop;
using detail::UnaryLoop;
using elements::Numbers;

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

template <typename T>
void add_type(Numbers numbers, std::vector<DType>& types) {
  if (elements::cpu_takes<T>(numbers)) types.push_back(dtype_of<T>());
}
std::vector<DType> types_of(Numbers numbers) {
  std::vector<DType> types;
  add_type<float>(numbers, types);
  add_type<double>(numbers, types);
  add_type<std::int32_t>(numbers, types);
  add_type<std::int64_t>(numbers, types);
  add_type<bool>(numbers, types);
  add_type<std::uint8_t>(numbers, types);
  add_type<std::int8_t>(numbers, types);
  return types;
}

std::unique_ptr<Kernel> make_binary(const char* op, Numbers numbers, DType type) {
  const BinaryLoop loop = binary_loop(op, type);
  if (numbers == Numbers::divided && is_integer(type)) return std::make_unique<IntegerDivisionKernel>(loop);
  return std::make_unique<BroadcastKernel>(loop);
}

const std::vector<RegisterKernel> element_kernels = [] {
  std::vector<RegisterKernel> made;
  elements::UnaryOps::each([&](auto row) {
    using Op = typename decltype(row)::type;
    made.push_back(
        {Op::kName, "CPU", types_of(Op::kNumbers), [](KernelInit& init) -> std::unique_ptr<Kernel> {
           return std::make_unique<UnaryKernel>(unary_loop(Op::kName, init.input_dtype(0)));
         }});
  });
  elements::BinaryOps::each([&](auto row) {
    using Op = typename decltype(row)::type;
    made.push_back(
        {Op::kName, "CPU", types_of(Op::kNumbers), [](KernelInit& init) -> std::unique_ptr<Kernel> {
           return make_binary(Op::kName, Op::kNumbers, init.input_dtype(0));
         }});
  });
  return made;
}();

}  // namespace
}  // namespace kolo
