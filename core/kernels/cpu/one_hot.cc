#include <algorithm>
#include <memory>

#include <kolo/core/kernels/cpu/element_bits.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

template <typename Index>
class OneHotKernel final : public Kernel {
 public:
  explicit OneHotKernel(KernelInit& init)
      : depth_(init.attr<std::int64_t>("depth")),
        axis_(init.attr<int>("axis")),
        on_(init.attr<double>("on")),
        off_(init.attr<double>("off")) {}

  void compute(KernelContext& context) override {
    const Tensor& y = context.output(0);
    detail::with_bits(size_of(y.dtype()), [&](auto tag) {
      using Bits = typename decltype(tag)::type;
      fill(context.input(0), detail::bits_of<Bits>(on_, y.dtype()), detail::bits_of<Bits>(off_, y.dtype()),
           reinterpret_cast<Bits*>(y.raw()));
    });
  }

 private:
  // y is [outer, depth, inner] where the indices are [outer, inner].
  template <typename Bits>
  void fill(const Tensor& indices, Bits on, Bits off, Bits* y) const {
    const auto& dims = indices.shape().dims();
    std::int64_t outer = 1;
    for (std::size_t axis = 0; axis < (axis_ < 0 ? dims.size() : static_cast<std::size_t>(axis_)); ++axis)
      outer *= dims[axis];
    if (indices.elements() == 0) return;
    const std::int64_t inner = indices.elements() / outer, block = depth_ * inner;
    const Index* index = indices.data<Index>();
    parallel_for(outer, std::max<std::int64_t>(1, kElementGrain / std::max<std::int64_t>(1, block)),
                 [=, this](std::int64_t begin, std::int64_t end) {
                   std::fill(y + begin * block, y + end * block, off);
                   for (std::int64_t o = begin; o < end; ++o)
                     for (std::int64_t i = 0; i < inner; ++i) {
                       const auto at = static_cast<std::int64_t>(index[o * inner + i]);
                       if (at >= 0 && at < depth_) y[o * block + at * inner + i] = on;
                     }
                 });
  }

  std::int64_t depth_;
  int axis_;
  double on_;
  double off_;
};

template <typename Index>
RegisterKernel kernel() {
  return RegisterKernel("OneHot", "CPU", {dtype_of<Index>()},
                        [](KernelInit& init) -> std::unique_ptr<Kernel> {
                          return std::make_unique<OneHotKernel<Index>>(init);
                        });
}

const RegisterKernel kernels[] = {kernel<std::int32_t>(), kernel<std::int64_t>(), kernel<std::uint8_t>()};

}  // namespace
}  // namespace kolo
