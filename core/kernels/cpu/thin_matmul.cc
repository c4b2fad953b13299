// MatMul where one side has few rows: the other comes from memory, and what it costs is to read or write it.
#include <cstdint>
#include <memory>

#include <kolo/core/kernels/cpu/gemm/thin_gemm.h>
#include <kolo/core/kernels/cpu/onednn/onednn.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/own_kernels.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/bf16.h>

namespace kolo {
namespace {

using detail::ThinGemm;

enum class Product { results, input_gradient, weight_gradient };

template <Product kProduct>
class ThinMatmul final : public Kernel {
 public:
  explicit ThinMatmul(const ThinGemm& shape) : shape_(shape) {}

  void compute(KernelContext& context) override {
    const float *a = context.input(0).data<float>(), *b = context.input(1).data<float>();
    float* const c = context.output(0).data<float>();
    constexpr std::int64_t kUnit = kProduct == Product::results ? ThinGemm::kColumns : 1, kGrain = 64;
    const std::int64_t units = kProduct == Product::results ? shape_.outputs / kUnit : shape_.inputs;
    parallel_for(units, kGrain, [&](std::int64_t begin, std::int64_t end) {
      if constexpr (kProduct == Product::results) shape_.results(a, b, c, begin * kUnit, end * kUnit);
      else if constexpr (kProduct == Product::input_gradient) shape_.input_gradient(a, b, c, begin, end);
      else shape_.weight_gradient(a, b, c, begin, end);
    });
  }

 private:
  ThinGemm shape_;
};

// Milliseconds of one core whose memory gives 15.8 GB/s (Xeon, family 6 model 167), matrices from memory,
// rows × inputs × outputs, oneDNN's GEMM → this, results / gradient of the inputs / of the weights: 4 × 25088
// × 4096: 54 → 29 / 53 → 30 / 33 → 19; 8 × 4096 × 4096: 12.2 → 5.7 / 12.6 → 6.5 / 6.0 → 3.5; 1 × 4096 × 4096:
// 4.1 → 4.1 / 4.2 → 4.1 / 5.4 → 2.9; 4 × 1024 × 1024: 0.45 → 0.29 / 0.47 → 0.30 / 0.31 → 0.33.
std::unique_ptr<Kernel> make_thin_matmul(KernelInit& init) {
  if (init.is_marked(kInBf16)) return init.decline("the thin product computes in f32");
  if (!detail::has_elements(init))
    return init.decline("the thin product needs shapes that are known before the step");
  const Shape &a = init.input_shape(0), &b = init.input_shape(1);
  const bool transpose_a = init.attr<bool>("transpose_a"), transpose_b = init.attr<bool>("transpose_b");
  if (a.rank() == 2 && b.rank() == 2 && !(transpose_a && transpose_b)) {
    const ThinGemm shape{a.dim(0), transpose_a ? a.dim(1) : b.dim(0), b.dim(1)};
    if (shape.is_worth_it()) {
      if (!detail::prefers_own(detail::OwnKernel::thin_product))
        return init.decline(detail::why_not_own(detail::OwnKernel::thin_product));
      if (transpose_a) return std::make_unique<ThinMatmul<Product::weight_gradient>>(shape);
      if (transpose_b) return std::make_unique<ThinMatmul<Product::input_gradient>>(shape);
      return std::make_unique<ThinMatmul<Product::results>>(shape);
    }
  }
  return init.decline(
      "the thin product takes two matrices, of which one has few rows and the other is large");
}

const RegisterKernel thin_matmul("MatMul", "CPU", {DType::f32}, make_thin_matmul, 3);

}  // namespace
}  // namespace kolo
