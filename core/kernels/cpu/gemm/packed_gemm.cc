#include <kolo/core/kernels/cpu/gemm/packed_gemm.h>

#include <algorithm>

#include <hwy/cache_control.h>

#include <kolo/core/kernels/cpu/gemm/gemm_parts.h>
#include <kolo/core/kernels/cpu/gemm/packed_gemm_internal.h>

#include <kolo/core/kernels/cpu/loops/each_target-inl.h>

#include <kolo/core/kernels/cpu/gemm/gemm_panels-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

static_assert(kTileRows <= kMostTileRows);

// [kRows, kTileCols] of c from packed a and b. ahead: what a later tile reads.
template <int kRows>
HWY_NOINLINE void tile(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, std::int64_t depth,
                       const Target& to, const float* ahead) {
  const Floats d;
  V sums[kRows][2];
  KOLO_UNROLL
  for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = hn::Zero(d);
  const auto add_term = [&](std::int64_t k) HWY_ATTR {
    const V b0 = hn::Load(d, b + k * kTileCols), b1 = hn::Load(d, b + k * kTileCols + kLanes);
    KOLO_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const V factor = hn::Set(d, a[r * kRowStride + k]);
      sums[r][0] = hn::MulAdd(factor, b0, sums[r][0]);
      sums[r][1] = hn::MulAdd(factor, b1, sums[r][1]);
    }
  };
  // The tile's own lines are asked for one by one: all at once they leave the loads of b no line buffers.
  const float* own = to.c;
  std::int64_t step = kLanes, k = 0;
  for (; k + 8 <= depth; k += 8) {
    hwy::Prefetch(ahead + 2 * k);
    hwy::Prefetch(own);
    own += step;
    step = to.stride - step;
    KOLO_UNROLL
    for (int i = 0; i < 4; ++i) add_term(k + i);
    KOLO_UNROLL
    for (int i = 4; i < 8; ++i) add_term(k + i);
  }
  for (; k < depth; ++k) add_term(k);
  store_tile(sums, to);
}

// b's rows → panels [cols / kTileCols, depth, kTileCols].
void pack_cols(const float* b, std::int64_t stride, std::int64_t depth, std::int64_t cols, float* panels) {
  const Floats d;
  for (std::int64_t k = 0; k < depth; ++k) {
    const float* const row = b + k * stride;
    float* to = panels + k * kTileCols;
    for (std::int64_t j = 0; j < cols; j += kTileCols, to += depth * kTileCols) {
      hn::Store(hn::LoadU(d, row + j), d, to);
      hn::Store(hn::LoadU(d, row + j + kLanes), d, to + kLanes);
    }
  }
}

class Multiplication {
 public:
  Multiplication(const PackedGemm& shape, const float* a, const float* b, float* c, float* scratch)
      : shape_(shape), a_(a), b_(b), c_(c), rows_(scratch), panels_(scratch + kRowsFloats) {}

  void run() {
    const std::int64_t depth = packed_depth(shape_), bands = parts_of(shape_.rows, kTileRows);
    for (first_col_ = 0; first_col_ < shape_.cols; first_col_ += kMostCols) {
      cols_ = std::min(kMostCols, shape_.cols - first_col_);
      for (first_ = 0; first_ < shape_.inner; first_ += depth) {
        deep_ = std::min(depth, shape_.inner - first_);
        blocks_ = parts_of(deep_, kDepth);
        pack_b();
        // At least 256 rows: they make bands of kTileRows and kTileRows - 1.
        for (std::int64_t band = 0; band < bands; ++band) multiply_rows(Part(shape_.rows, band, bands));
      }
    }
  }

 private:
  void pack_b() {
    for (std::int64_t n = 0; n < blocks_; ++n) {
      const Part block(deep_, n, blocks_);
      const std::int64_t k = first_ + block.first;
      float* const panels = panels_ + block.first * cols_;
      if (shape_.transpose_b)
        pack_transposed_cols(b_ + first_col_ * shape_.inner + k, shape_.inner, block.count, cols_, panels);
      else pack_cols(b_ + k * shape_.cols + first_col_, shape_.cols, block.count, cols_, panels);
    }
  }

  void multiply_rows(const Part& rows) {
    for (std::int64_t n = 0; n < blocks_; ++n) {
      const Part block(deep_, n, blocks_);
      const std::int64_t k = first_ + block.first;
      for (std::int64_t r = 0; r < rows.count; ++r)
        std::copy_n(a_ + (rows.first + r) * shape_.inner + k, block.count, rows_ + r * kRowStride);
      for (std::int64_t j = 0; j < cols_; j += kTileCols) {
        const Target to{c_ + rows.first * shape_.cols + first_col_ + j, shape_.cols, k > 0};
        // Each tile asks for a row of the band behind this one.
        const std::int64_t next = std::min(rows.first + rows.count + j / kTileCols, shape_.rows - 1);
        const float* const ahead = a_ + next * shape_.inner + k;
        const auto run = rows.count == kTileRows ? tile<kTileRows> : tile<kTileRows - 1>;
        run(rows_, panels_ + block.first * cols_ + j * block.count, block.count, to, ahead);
      }
    }
  }

  const PackedGemm& shape_;
  const float *a_, *b_;
  float *c_, *rows_, *panels_;
  std::int64_t first_col_ = 0, cols_ = 0;  // of the columns that are packed
  std::int64_t first_ = 0, deep_ = 0,
               blocks_ = 0;  // of the inner dimension likewise; in blocks of kDepth at most
};

void multiply(const PackedGemm& shape, const float* a, const float* b, float* c, float* scratch) {
  Multiplication(shape, a, b, c, scratch).run();
}

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo::detail {

HWY_EXPORT(multiply);

std::size_t PackedGemm::scratch_bytes() const {
  const std::int64_t floats = kRowsFloats + packed_depth(*this) * std::min(cols, kMostCols);
  return static_cast<std::size_t>(floats) * sizeof(float);
}

void PackedGemm::run(const float* a, const float* b, float* c, float* scratch) const {
  HWY_DYNAMIC_DISPATCH(multiply)(*this, a, b, c, scratch);
}

bool has_fast_packed_gemm() { return (hwy::SupportedTargets() & HWY_AVX3) != 0; }

}  // namespace kolo::detail
#endif  // HWY_ONCE
