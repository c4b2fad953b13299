#include <kolo/core/kernels/cpu/gemm/product_sum.h>

#include <array>

#include <dnnl.h>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/gemm/packed_gemm.h>
#include <kolo/core/kernels/cpu/onednn/onednn.h>
#include <kolo/core/kernels/own_kernels.h>
#include <kolo/core/kernels/parallel.h>

namespace kolo::detail {
namespace {

constexpr std::size_t kMostFactors = 3;

}  // namespace

// What the processor has is asked for once: in a virtual machine it takes 40 µs.
ProductSum::ProductSum(std::int64_t rows, std::int64_t inputs, std::int64_t outputs)
    : rows_(rows),
      inputs_(inputs),
      outputs_(outputs),
      may_stream_(has_fast_packed_gemm() && prefers_own(OwnKernel::streamed_product)) {}

StreamedGemm ProductSum::streamed(std::int64_t count) const {
  return {count, rows_, outputs_, /*transpose_a=*/true};
}

bool ProductSum::is_streamed(std::int64_t count) const {
  return may_stream_ && intra_op_threads() == 1 && streamed(count).fits_sum();
}

std::size_t ProductSum::scratch_bytes(int factors) const {
  return is_streamed(inputs_) ? streamed(inputs_).scratch_bytes_of_sum(factors) : 0;
}

// Few rows as linalg.cc takes them for one product; else the classic GEMM, since a product that is added to
// another costs no more than as many rows of one. One thread, Xeon, family 6 model 167, from memory, inputs ×
// rows × outputs whole, and half of the inputs of two: 1024 × 128 × 1024: 1.39, 1.42 ms; 784 × 128 × 1024:
// 1.06, 1.05; streamed 3136 × 64 × 1024: 2.6, 2.6.
void ProductSum::run(std::span<const GradientFactors> factors, std::int64_t first, std::int64_t count,
                     float* gradient, float* scratch) const {
  float* const part = gradient + first * outputs_;
  if (is_streamed(count)) {
    std::array<StreamedGemm::Factors, kMostFactors> from;
    if (factors.size() > from.size())
      throw InternalError("a sum of {} products; up to {} are streamed", factors.size(), from.size());
    for (std::size_t f = 0; f < factors.size(); ++f) from[f] = {factors[f].x + first, factors[f].dy};
    return streamed(count).run_sum(std::span(from).first(factors.size()), inputs_, part, scratch);
  }
  float beta = 0;
  for (const GradientFactors& factor : factors) {
    const auto status = dnnl_sgemm('T', 'N', count, outputs_, rows_, 1, factor.x + first, inputs_, factor.dy,
                                   outputs_, beta, part, outputs_);
    if (status != dnnl_success) throw_onednn_error(dnnl::error(status, "could not multiply two matrices"));
    beta = 1;
  }
}

}  // namespace kolo::detail
