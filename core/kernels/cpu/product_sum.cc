#include <kolo/core/kernels/cpu/product_sum.h>

#include <array>
#include <cassert>

#include <dnnl.h>

#include <kolo/core/kernels/cpu/onednn.h>
#include <kolo/core/kernels/cpu/packed_gemm.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/cpu/streamed_gemm.h>

namespace kolo::detail {
namespace {

constexpr std::size_t kMostFactors = 3;

StreamedGemm streamed(const ProductSum& sum, std::int64_t count) {
  return {count, sum.rows, sum.outputs, /*transpose_a=*/true};
}

bool is_streamed(const ProductSum& sum, std::int64_t count) {
  return intra_op_threads() == 1 && has_fast_packed_gemm() && streamed(sum, count).fits_sum();
}

}  // namespace

std::size_t ProductSum::scratch_bytes(int factors) const {
  return is_streamed(*this, inputs) ? streamed(*this, inputs).scratch_bytes_of_sum(factors) : 0;
}

// Few rows as linalg.cc takes them for one product; else the classic GEMM, since a product that is added to
// another costs no more than as many rows of one. One thread, Xeon, family 6 model 167, from memory, inputs ×
// rows × outputs whole, and half of the inputs of two: 1024 × 128 × 1024: 1.39, 1.42 ms; 784 × 128 × 1024:
// 1.06, 1.05; streamed 3136 × 64 × 1024: 2.6, 2.6.
void ProductSum::run(std::span<const GradientFactors> factors, std::int64_t first, std::int64_t count,
                     float* gradient, float* scratch) const {
  float* const part = gradient + first * outputs;
  if (is_streamed(*this, count)) {
    assert(factors.size() <= kMostFactors);
    std::array<StreamedGemm::Factors, kMostFactors> from;
    for (std::size_t f = 0; f < factors.size(); ++f) from[f] = {factors[f].x + first, factors[f].dy};
    return streamed(*this, count).run_sum(std::span(from).first(factors.size()), inputs, part, scratch);
  }
  float beta = 0;
  for (const GradientFactors& factor : factors) {
    const auto status = dnnl_sgemm('T', 'N', count, outputs, rows, 1, factor.x + first, inputs, factor.dy,
                                   outputs, beta, part, outputs);
    if (status != dnnl_success) throw_onednn_error(dnnl::error(status, "could not multiply two matrices"));
    beta = 1;
  }
}

}  // namespace kolo::detail
