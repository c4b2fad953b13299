#include <algorithm>
#include <memory>
#include <vector>

#include <kolo/core/kernels/cpu/element_bits.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/cpu/strided_copy.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

void fill(const Tensor& tensor, double value) {
  detail::with_bits(size_of(tensor.dtype()), [&](auto tag) {
    using Bits = typename decltype(tag)::type;
    const Bits bits = detail::bits_of<Bits>(value, tensor.dtype());
    Bits* to = reinterpret_cast<Bits*>(tensor.raw());
    parallel_for(tensor.elements(), kElementGrain,
                 [=](std::int64_t begin, std::int64_t end) { std::fill(to + begin, to + end, bits); });
  });
}

class PadKernel final : public Kernel {
 public:
  explicit PadKernel(KernelInit& init)
      : before_(init.attr<std::vector<std::int64_t>>("before")), value_(init.attr<double>("value")) {}

  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    fill(y, value_);
    const auto &from = x.shape().dims(), &to = y.shape().dims();
    std::int64_t stride = y.elements(), start = 0;
    detail::StridedIndex<1> inside;
    for (std::size_t axis = 0; axis < from.size(); ++axis) {
      stride = to[axis] == 0 ? 0 : stride / to[axis];
      start += before_[axis] * stride;
      inside.push(from[axis], {stride});
    }
    const std::size_t size = size_of(x.dtype());
    detail::scatter_strided(inside, size, x.raw(), y.raw() + start * static_cast<std::int64_t>(size));
  }

 private:
  std::vector<std::int64_t> before_;
  double value_;
};

const RegisterKernel pad("Pad", "CPU",
                         {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean, DType::u8,
                          DType::i8, DType::f16, DType::bf16},
                         [](KernelInit& init) -> std::unique_ptr<Kernel> {
                           return std::make_unique<PadKernel>(init);
                         });

}  // namespace
}  // namespace kolo
