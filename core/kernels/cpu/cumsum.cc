#include <algorithm>
#include <array>
#include <memory>

#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/cpu/reduce.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

// x is [outer, count, inner], summed along count; neighbours of `inner` together, so that memory is read in
// its order.
template <typename T>
class CumsumKernel final : public Kernel {
 public:
  explicit CumsumKernel(KernelInit& init)
      : axis_(init.attr<int>("axis")),
        exclusive_(init.attr<bool>("exclusive")),
        reverse_(init.attr<bool>("reverse")) {}

  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    if (x.elements() == 0) return;
    const auto& dims = x.shape().dims();
    const auto axis = static_cast<std::size_t>(axis_ < 0 ? axis_ + static_cast<int>(dims.size()) : axis_);
    const std::int64_t count = dims[axis];
    std::int64_t inner = 1;
    for (std::size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
    const std::int64_t outer = x.elements() / (count * inner), blocks = (inner + kBlock - 1) / kBlock;
    const T* from = x.data<T>();
    T* to = context.output(0).data<T>();
    parallel_for(outer * blocks, std::max<std::int64_t>(1, kElementGrain / (count * std::min(kBlock, inner))),
                 [=, this](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t column = i % blocks * kBlock,
                                        at = i / blocks * count * inner + column;
                     sum_columns(from + at, to + at, count, inner, std::min(kBlock, inner - column));
                   }
                 });
  }

 private:
  static constexpr std::int64_t kBlock = 64;

  void sum_columns(const T* x, T* y, std::int64_t count, std::int64_t step, std::int64_t columns) const {
    std::array<detail::Wide<T>, kBlock> sums{};
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = (reverse_ ? count - 1 - i : i) * step;
      for (std::int64_t column = 0; column < columns; ++column) {
        // Read first: y may be x.
        const auto element = static_cast<detail::Wide<T>>(x[at + column]);
        if (exclusive_) y[at + column] = static_cast<T>(sums[column]);
        sums[column] += element;
        if (!exclusive_) y[at + column] = static_cast<T>(sums[column]);
      }
    }
  }

  int axis_;
  bool exclusive_;
  bool reverse_;
};

template <typename T>
RegisterKernel kernel() {
  return RegisterKernel("Cumsum", "CPU", {dtype_of<T>()}, [](KernelInit& init) -> std::unique_ptr<Kernel> {
    return std::make_unique<CumsumKernel<T>>(init);
  });
}

const RegisterKernel kernels[] = {kernel<float>(), kernel<double>(), kernel<std::int32_t>(),
                                  kernel<std::int64_t>()};

}  // namespace
}  // namespace kolo
