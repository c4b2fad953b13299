#include <kolo/core/kernels/cpu/gemm/streamed_gemm.h>

#include <algorithm>
#include <type_traits>

#include <kolo/core/kernels/cpu/gemm/gemm_parts.h>
#include <kolo/core/kernels/cpu/gemm/streamed_gemm_internal.h>

#include <kolo/core/kernels/cpu/loops/each_target-inl.h>

#include <kolo/core/kernels/cpu/gemm/gemm_tile-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

static_assert(kTileRows >= kLeastTileRows && kTileRows <= kMostTileRows && kTileCols <= kPanelCols);

// `call` with the number of rows as a constant. 64 rows and more make bands of these heights.
template <typename Call>
void with_rows(std::int64_t rows, const Call& call) {
  switch (kTileRows - rows) {
    case 0: return call(std::integral_constant<int, kTileRows>());
    case 1: return call(std::integral_constant<int, kTileRows - 1>());
    case 2: return call(std::integral_constant<int, kTileRows - 2>());
    default: return call(std::integral_constant<int, kTileRows - 3>());
  }
}

class Streaming {
  using Factors = StreamedGemm::Factors;

 public:
  Streaming(const StreamedGemm& shape, const float* a, const float* b, float* c, float* scratch)
      : shape_(shape), a_(a), b_(b), c_(c), scratch_(scratch) {}

  // a · b or aᵀ · b.
  void run_panels() {
    const std::int64_t blocks = parts_of(shape_.inner, kDepth);
    for (std::int64_t n = 0; n < blocks; ++n) {
      const Part block(shape_.inner, n, blocks);
      if (shape_.transpose_a) pack_a<Order::by_terms>(block);
      else pack_a<Order::by_rows>(block);
      asked_rows_ = 0;
      for (std::int64_t j = 0; j < shape_.cols; j += kTileCols)
        if (shape_.transpose_a) multiply_panel<Order::by_terms>(block, j);
        else multiply_panel<Order::by_rows>(block, j);
    }
  }

  // The sum of aᵀ · b over `factors`, of few terms all together: each of c's tiles is complete when it leaves
  // the nearest cache. stride: between the terms of an a.
  void run_bands(std::span<const Factors> factors, std::int64_t stride) {
    const std::int64_t terms = shape_.inner * static_cast<std::int64_t>(factors.size());
    const std::int64_t most_cols = near_cols(shape_, terms), bands = parts_of(shape_.rows, kTileRows);
    float* const band = scratch_ + most_cols * terms;
    for (std::int64_t first_col = 0; first_col < shape_.cols; first_col += most_cols)
      for (std::int64_t n = 0; n < bands; ++n)
        multiply_band(factors, stride, Part(shape_.rows, n, bands), first_col,
                      std::min(most_cols, shape_.cols - first_col), band, n == 0);
  }

  // a · bᵀ.
  void run_columns() {
    float* const band = scratch_ + shape_.rows * shape_.inner;
    float* const sums = band + kBandFloats;
    pack_transposed_cols(a_, shape_.inner, shape_.inner, shape_.rows, scratch_);
    const std::int64_t bands = parts_of(shape_.cols, kTileRows);
    for (std::int64_t n = 0; n < bands; ++n)
      with_rows(Part(shape_.cols, n, bands).count,
                [&](auto rows) { multiply_columns<rows()>(Part(shape_.cols, n, bands).first, band, sums); });
  }

 private:
  // terms: 8 where there are tiles enough, which asks in a steadier way (GFLOP/s for 4 and 8: 128 × 1024 ×
  // 1024: 145, 153; aᵀ · b 256 × 2048 × 1024: 148, 153; 256 × 2048 × 768: 151, 158).
  Asked nothing_of(const Target& to, std::int64_t tiles) const {
    return {to.c, kLanes, to.stride - kLanes, scratch_, 0, 0, tiles > 8 ? 8 : 4};
  }

  // Part `n` of `rows` rows, each of two lines, of which `ask.terms` tiles ask for one each.
  static void ask_for_part(Asked& ask, std::int64_t n, const float* x, std::int64_t rows,
                           std::int64_t stride) {
    ask.next = x + n * (rows / ask.terms) * stride;
    ask.step = stride;
  }
  // Rows of kDepth floats, as many as a tile of kDepth terms asks for: 32 / ask.terms.
  static void ask_for_rows(Asked& ask, const float* x, std::int64_t stride) {
    static_assert(kDepth == 8 * 2 * kLine);
    ask.next = x;
    ask.step = 2 * kLine;
    ask.jump = stride - kDepth;
  }

  float* band_of(std::int64_t n) const { return scratch_ + kDepth * kTileCols + n * kBandFloats; }
  std::int64_t bands() const { return parts_of(shape_.rows, kTileRows); }

  template <Order kOrder>
  void pack_a(const Part& block) const {
    for (std::int64_t n = 0; n < bands(); ++n) {
      const Part band(shape_.rows, n, bands());
      with_rows(band.count, [&](auto rows) {
        if constexpr (kOrder == Order::by_rows)
          pack_by_rows<rows()>(a_ + band.first * shape_.inner + block.first, shape_.inner, block.count,
                               band_of(n));
        else
          pack_by_terms<rows()>(a_ + block.first * shape_.rows + band.first, shape_.rows, block.count,
                                band_of(n));
      });
    }
  }

  // Four or eight bands behind the first ask for the next panel, the others for the next block of a.
  template <Order kOrder>
  void multiply_panel(const Part& block, std::int64_t j) {
    const float* const from = b_ + block.first * shape_.cols + j;
    const float* const next = j + kTileCols < shape_.cols ? from + kTileCols : b_ + block.end() * shape_.cols;
    for (std::int64_t n = 0; n < bands(); ++n) {
      const Part band(shape_.rows, n, bands());
      const Target to{c_ + band.first * shape_.cols + j, shape_.cols, block.first > 0};
      Asked ask = nothing_of(to, bands());
      if (n >= 1 && n <= ask.terms) ask_for_part(ask, n - 1, next, block.count, shape_.cols);
      else if (block.end() < shape_.inner) ask_for_a<kOrder>(ask, block);
      const Panel panel{scratch_, from, shape_.cols};
      with_rows(band.count, [&](auto rows) {
        const auto run = n == 0 ? tile<rows(), kOrder, true> : tile<rows(), kOrder, false>;
        run(band_of(n), panel, block.count, to, ask);
      });
    }
  }

  template <Order kOrder>
  void ask_for_a(Asked& ask, const Part& block) {
    constexpr bool kByRows = kOrder == Order::by_rows;
    const std::int64_t rows = kByRows ? shape_.rows : std::min(kDepth, shape_.inner - block.end());
    if (asked_rows_ >= rows) return;
    const std::int64_t stride = kByRows ? shape_.inner : shape_.rows;
    ask_for_rows(ask, a_ + block.end() * (kByRows ? 1 : shape_.rows) + asked_rows_ * stride, stride);
    asked_rows_ += 32 / ask.terms;
  }

  void multiply_band(std::span<const Factors> factors, std::int64_t stride, const Part& band,
                     std::int64_t first_col, std::int64_t cols, float* packed, bool is_first) const {
    const auto terms = shape_.inner * static_cast<std::int64_t>(factors.size());
    with_rows(band.count, [&](auto rows) {
      for (std::size_t f = 0; f < factors.size(); ++f)
        pack_by_terms<rows()>(factors[f].a + band.first, stride, shape_.inner,
                              packed + static_cast<std::int64_t>(f) * shape_.inner * kLine);
      const auto run = is_first ? tile<rows(), Order::by_terms, true> : tile<rows(), Order::by_terms, false>;
      for (std::int64_t j = 0; j < cols; j += kTileCols)
        for (std::size_t f = 0; f < factors.size(); ++f) {
          const auto first_term = static_cast<std::int64_t>(f) * shape_.inner;
          const Target to{c_ + band.first * shape_.cols + first_col + j, shape_.cols, f > 0};
          Asked ask = nothing_of(to, cols / kTileCols);
          if (j < ask.terms * kTileCols)
            ask_for_part(ask, j / kTileCols, factors[f].a + band.end(), shape_.inner, stride);
          const Panel panel{scratch_ + j * terms + first_term * kTileCols, factors[f].b + first_col + j,
                            shape_.cols};
          run(packed + first_term * kLine, panel, shape_.inner, to, ask);
        }
    });
  }

  // kRows columns of c, from the first. sums: [kRows, rows of c].
  template <int kRows>
  void multiply_columns(std::int64_t first, float* band, float* sums) const {
    const std::int64_t blocks = parts_of(shape_.inner, kDepth), tiles = shape_.rows / kTileCols;
    for (std::int64_t n = 0; n < blocks; ++n) {
      const Part block(shape_.inner, n, blocks);
      const bool is_last = n + 1 == blocks;
      pack_by_rows<kRows>(b_ + first * shape_.inner + block.first, shape_.inner, block.count, band);
      const float* const next =
          is_last ? b_ + (first + kRows) * shape_.inner : b_ + first * shape_.inner + block.end();
      for (std::int64_t t = 0; t < tiles; ++t) {
        const std::int64_t row = t * kTileCols;
        const Target to{sums + row, shape_.rows, n > 0};
        Asked ask = nothing_of(to, tiles);
        // The sums are near; what the last block leads to is not.
        if (is_last) ask.c = c_ + row * shape_.cols + first, ask.even_step = ask.odd_step = shape_.cols;
        ask_for_rows(ask, next + t * kRows / tiles * shape_.inner, shape_.inner);
        const Panel panel{scratch_ + row * shape_.inner + block.first * kTileCols, nullptr, 0};
        tile<kRows, Order::by_rows, false>(band, panel, block.count, to, ask);
      }
    }
    for (std::int64_t row = 0; row < shape_.rows; ++row)
      for (int i = 0; i < kRows; ++i) c_[row * shape_.cols + first + i] = sums[i * shape_.rows + row];
  }

  const StreamedGemm& shape_;
  const float *a_, *b_;
  float *c_, *scratch_;
  std::int64_t asked_rows_ = 0;  // of the next block of a
};

// x [rows, cols] → y [cols, rows], multiples of kLine both.
void transpose(const float* x, std::int64_t rows, std::int64_t cols, float* y) {
  const Floats d;
  const hn::RebindToSigned<Floats> integers;
  HWY_ALIGN float piece[kLine * kLine];
  const auto column = hn::Mul(hn::Iota(integers, 0), hn::Set(integers, static_cast<std::int32_t>(kLine)));
  for (std::int64_t j = 0; j < cols; j += kLine)
    for (std::int64_t i = 0; i < rows; i += kLine) {
      for (std::int64_t r = 0; r < kLine; ++r) std::copy_n(x + (i + r) * cols + j, kLine, piece + r * kLine);
      for (std::int64_t c = 0; c < kLine; ++c)
        for (std::int64_t r = 0; r < kLine; r += kLanes)
          hn::StoreU(hn::GatherIndex(d, piece + r * kLine + c, column), d, y + (j + c) * rows + i + r);
    }
}

void stream(const StreamedGemm& shape, const float* a, const float* b, float* c, float* scratch) {
  Streaming streaming(shape, a, b, c, scratch);
  switch (way_of(shape)) {
    case StreamedWay::panels: return streaming.run_panels();
    case StreamedWay::bands: {
      const StreamedGemm::Factors factors{a, b};
      return streaming.run_bands(std::span(&factors, 1), shape.rows);
    }
    case StreamedWay::columns: return streaming.run_columns();
    case StreamedWay::turned: {
      const StreamedGemm other = turned(shape);
      float* const product = scratch;
      Streaming(other, b, a, product, scratch + shape.rows * shape.cols).run_panels();
      return transpose(product, other.rows, other.cols, c);
    }
    case StreamedWay::none: return;
  }
}

void stream_sum(const StreamedGemm& shape, std::span<const StreamedGemm::Factors> factors,
                std::int64_t stride, float* c, float* scratch) {
  Streaming(shape, nullptr, nullptr, c, scratch).run_bands(factors, stride);
}

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo::detail {

HWY_EXPORT(stream);
HWY_EXPORT(stream_sum);

bool StreamedGemm::fits() const { return way_of(*this) != StreamedWay::none; }

std::size_t StreamedGemm::scratch_bytes() const {
  const auto floats = [&]() -> std::int64_t {
    switch (way_of(*this)) {
      // The lowest bands are the ones of narrow registers.
      case StreamedWay::panels: return kDepth * kPanelCols + parts_of(rows, kLeastTileRows) * kBandFloats;
      case StreamedWay::bands: return floats_of_bands(*this, 1);
      case StreamedWay::columns: return rows * inner + kBandFloats + kMostTileRows * rows;
      case StreamedWay::turned:
        return rows * cols + static_cast<std::int64_t>(turned(*this).scratch_bytes() / sizeof(float));
      case StreamedWay::none: break;
    }
    return 0;
  };
  return static_cast<std::size_t>(floats()) * sizeof(float);
}

void StreamedGemm::run(const float* a, const float* b, float* c, float* scratch) const {
  HWY_DYNAMIC_DISPATCH(stream)(*this, a, b, c, scratch);
}

bool StreamedGemm::fits_sum() const { return way_of(*this) == StreamedWay::bands; }

std::size_t StreamedGemm::scratch_bytes_of_sum(int factors) const {
  return static_cast<std::size_t>(floats_of_bands(*this, factors)) * sizeof(float);
}

void StreamedGemm::run_sum(std::span<const Factors> factors, std::int64_t stride, float* c,
                           float* scratch) const {
  HWY_DYNAMIC_DISPATCH(stream_sum)(*this, factors, stride, c, scratch);
}

}  // namespace kolo::detail
#endif  // HWY_ONCE
