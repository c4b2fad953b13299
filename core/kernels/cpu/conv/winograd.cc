#include <kolo/core/kernels/cpu/conv/winograd.h>

#include <algorithm>

#include <kolo/core/kernels/cpu/conv/winograd_internal.h>
#include <kolo/core/kernels/cpu/gemm/gemm_parts.h>

#include <kolo/core/kernels/cpu/loops/each_target-inl.h>

#include <kolo/core/kernels/cpu/conv/winograd_values-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {
namespace {

Tiles tiles_in(const WinogradConvolution& c) {
  return {c.images, c.tiles_along(c.rows), c.tiles_along(c.cols), c.tile()};
}

using Lanes = hn::Vec<hn::RebindToSigned<Floats>>;  // where each lane's number lies

// Weights [O,C,window,window] as the convolution or the turned one sees them: a window for each input and
// output.
struct Windows {
  const float* at;
  std::int64_t output_stride, input_stride;
  bool turned;
};

HWY_INLINE Lanes lanes_apart(std::int64_t stride) {
  const hn::RebindToSigned<Floats> d;
  return hn::Mul(hn::Iota(d, 0), hn::Set(d, static_cast<std::int32_t>(stride)));
}

// The windows of a block of outputs.
template <int kWindow>
struct WindowSquare {
  const float* at;
  Lanes outputs;
  bool turned;
  HWY_INLINE V operator()(int row, int col) const {
    const int n = row * kWindow + col;
    return hn::GatherIndex(Floats(), at + (turned ? kWindow * kWindow - 1 - n : n), outputs);
  }
};
template <int kWindow>
struct ToWindows {
  float* at;
  Lanes outputs;
  HWY_INLINE void operator()(int row, int col, V x) const {
    hn::ScatterIndex(x, Floats(), at + row * kWindow + col, outputs);
  }
};

// The windows' values: for each point panels [inputs, vectors, lanes], one for each pair of blocks of outputs
// and one for the block that is left.
struct WindowValues {
  float* at;
  std::int64_t inputs, outputs;
  std::int64_t blocks_in_a_row = inputs / kLanes;  // whose products one register adds up

  std::int64_t point_stride() const { return odd_lines(inputs * outputs); }
  std::int64_t floats() const { return kPoints * point_stride(); }
  // Of outputs from block `first` on.
  float* panel(std::int64_t point, std::int64_t first) const {
    return at + point * point_stride() + first * kLanes * inputs;
  }
  // They are read from beyond the second nearest cache.
  bool are_far() const { return floats() > 128 * 1024; }
  // Past the caches on their way to memory: 512 × 512 channels, 32 tiles: 9 → 7.4 ms; of 256 × 512 and fewer
  // a part is still there when it is read.
  bool pass_caches() const { return floats() > 8 * 1024 * 1024; }

  template <int kWindow>
  void fill(const Windows& windows) const {
    using Map = ValueMap<kWindow, true>;
    const Lanes lanes = lanes_apart(windows.output_stride);
    const std::int64_t blocks = outputs / kLanes;
    const bool stream = pass_caches();
    for (std::int64_t first = 0; first < blocks; first += 2) {
      const std::int64_t end = std::min(first + 2, blocks);
      float* to = panel(0, first);
      for (std::int64_t k = 0; k < inputs; ++k)
        for (std::int64_t block = first; block < end; ++block, to += kLanes) {
          const WindowSquare<kWindow> window{
              windows.at + block * kLanes * windows.output_stride + k * windows.input_stride, lanes,
              windows.turned};
          if (stream) map_square<Map>(window, StreamToPoints{to, point_stride()});
          else map_square<Map>(window, ToPoints{to, point_stride()});
        }
    }
    if (stream) hwy::FlushStream();
  }
};

// to [vectors, tiles, lanes] from block `first` on = from · the panel.
template <int kVectors>
void multiply_panel(const Values& from, const WindowValues& windows, std::int64_t point, std::int64_t first,
                    const Values& to) {
  const std::int64_t bands = parts_of(from.tiles, tile_rows(kVectors));
  const float* const panel = windows.panel(point, first);
  // Each band asks for its part of the next panel.
  const std::int64_t lines = windows.are_far() ? parts_of(kVectors * kLanes, bands) : 0;
  const float* ahead = panel + windows.inputs * kVectors * kLanes;
  for (std::int64_t band = 0; band < bands; ++band) {
    const Part rows(from.tiles, band, bands);
    const ProductTile tile = product_tile_of<kVectors>(rows.count);
    for (std::int64_t block = 0, count; block < from.blocks; block += count) {
      count = std::min(windows.blocks_in_a_row, from.blocks - block);
      tile({from.block(point, block) + rows.first * kLanes, from.block_stride(), count,
            panel + block * kLanes * kVectors * kLanes, to.block(point, first) + rows.first * kLanes,
            to.block_stride(), block > 0, Ahead{ahead, lines}});
      ahead += lines * count * kLine;
    }
  }
}

// Scratch memory, in floats.
struct ConvolutionMemory {
  explicit ConvolutionMemory(const WinogradConvolution& c)
      : at_once(tiles_at_once(c)),
        x(WindowValues{nullptr, c.channels, c.outs}.floats()),
        y(x + Values::floats(c.channels / kLanes, at_once)),
        end(y + Values::floats(c.outs / kLanes, at_once)) {}
  std::int64_t at_once;
  std::int64_t x, y, end;
};

// Values at the points are larger than what becomes of them, and so is what their sums round off. Of 128
// channels results are off by 0.8e-6 of their size where products of 16 channels are added up at a time, and
// these sums then; else by 1.6e-6. That takes a tenth longer. It is for the results of layers of few
// channels: what early layers round off grows in all behind them.
constexpr std::int64_t kFewChannels = 128;
constexpr std::int64_t kShortSum = kLanes < 16 ? 16 / kLanes : 1;  // blocks

template <int kWindow>
void convolve_by(const WinogradConvolution& c, const Windows& windows, const float* x, float* y,
                 float* scratch) {
  const ConvolutionMemory memory(c);
  WindowValues window_values{scratch, c.channels, c.outs};
  if (!windows.turned && c.channels <= kFewChannels) window_values.blocks_in_a_row = kShortSum;
  window_values.fill<kWindow>(windows);
  const Tiles tiles = tiles_in(c);
  for (std::int64_t first = 0; first < tiles.count(); first += memory.at_once) {
    const std::int64_t count = std::min(memory.at_once, tiles.count() - first);
    const Values from{scratch + memory.x, c.channels / kLanes, count},
        to{scratch + memory.y, c.outs / kLanes, count};
    map_pixels<ImageMap>({x, c.rows.size, c.cols.size}, c.rows.pad_before, c.cols.pad_before, tiles, first,
                         from);
    for (std::int64_t p = 0; p < kPoints; ++p)
      for (std::int64_t b = 0; b < to.blocks; b += 2) {
        if (to.blocks - b >= 2) multiply_panel<2>(from, window_values, p, b, to);
        else multiply_panel<1>(from, window_values, p, b, to);
      }
    map_results<CoefficientMap<kPatch + 1 - kWindow, false>>(to, tiles, first, y, c.rows.outputs,
                                                             c.cols.outputs);
  }
}
void convolve(const WinogradConvolution& c, const Windows& windows, const float* x, float* y,
              float* scratch) {
  (c.window == 3 ? convolve_by<3> : convolve_by<5>)(c, windows, x, y, scratch);
}

void results(const WinogradConvolution& c, const float* x, const float* weights, float* y, float* scratch) {
  const std::int64_t window = c.window * c.window;
  convolve(c, {weights, c.channels * window, window, false}, x, y, scratch);
}

void image_gradient(const WinogradConvolution& c, const float* weights, const float* dy, float* dx,
                    float* scratch) {
  const std::int64_t window = c.window * c.window;
  convolve(turned(c), {weights, window, c.channels * window, true}, dy, dx, scratch);
}

// sums [kSumRows, blocks · lanes] = or += those rows of x, from `row` on, with blocks of y from `first` on,
// over all tiles.
void sum_rows(const Values& x, std::int64_t row, const Values& y, std::int64_t first, std::int64_t blocks,
              std::int64_t point, float* sums, bool add) {
  const float* const rows = x.block(point, row / kLanes) + row % kLanes;
  for (std::int64_t b = 0; b < blocks; b += 2) {
    const TileSum tile{
        rows, y.block(point, first + b), y.block_stride(), x.tiles, sums + b * kLanes, blocks * kLanes, add};
    if (blocks - b >= 2) sum_tile<2>(tile);
    else sum_tile<1>(tile);
  }
}

// The gradients of `rows` outputs' windows, from `row` on, for inputs of some blocks, from their values' sums
// [points, rows, blocks · lanes].
template <int kWindow>
void map_sums(const WinogradConvolution& c, const float* sums, std::int64_t point_stride, std::int64_t row,
              std::int64_t rows, std::int64_t first, std::int64_t blocks, float* dweights) {
  constexpr std::int64_t kWeights = kWindow * kWindow;
  const Lanes lanes = lanes_apart(kWeights);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t b = 0; b < blocks; ++b) {
      float* const to = dweights + ((row + r) * c.channels + (first + b) * kLanes) * kWeights;
      map_square<CoefficientMap<kWindow, true>>(FromPoints{sums + (r * blocks + b) * kLanes, point_stride},
                                                ToWindows<kWindow>{to, lanes});
    }
}

// The same.
struct SumsMemory {
  explicit SumsMemory(const WinogradConvolution& c)
      : at_once(sums_at_once(c) ? tiles_of(c) : tiles_at_once(c)),
        blocks(c.channels / kLanes),
        dy(Values::floats(blocks, at_once)),
        sums(dy + Values::floats(c.outs / kLanes, at_once)) {
    constexpr std::int64_t kNear = 128 * 1024;  // floats of the images' values that are used again and again
    if (sums_at_once(c))
      blocks = std::min(blocks, std::max<std::int64_t>(2, kNear / (kPoints * at_once * kLanes) / 2 * 2));
    rows = sums_at_once(c) ? kSumRows : c.outs;
    point_stride = odd_lines(rows * blocks * kLanes);
    end = sums + kPoints * point_stride;
  }
  std::int64_t at_once;
  std::int64_t blocks, rows;  // of the sums that are in memory at a time
  std::int64_t dy, sums, end;
  std::int64_t point_stride;  // of the sums
};

template <int kWindow>
void weight_gradient_by(const WinogradConvolution& c, const float* x, const float* dy, float* dweights,
                        float* scratch) {
  using ResultGradientMap = ValueMap<kPatch + 1 - kWindow, false>;
  const SumsMemory memory(c);
  float* const sums = scratch + memory.sums;
  const Tiles tiles = tiles_in(c);
  for (std::int64_t tile = 0; tile < tiles.count(); tile += memory.at_once) {
    const std::int64_t count = std::min(memory.at_once, tiles.count() - tile);
    const Values images{scratch, c.channels / kLanes, count},
        results{scratch + memory.dy, c.outs / kLanes, count};
    map_pixels<ImageMap>({x, c.rows.size, c.cols.size}, c.rows.pad_before, c.cols.pad_before, tiles, tile,
                         images);
    map_pixels<ResultGradientMap>({dy, c.rows.outputs, c.cols.outputs}, 0, 0, tiles, tile, results);
    const bool last = tile + count == tiles.count();
    for (std::int64_t first = 0; first < images.blocks; first += memory.blocks) {
      const std::int64_t blocks = std::min(memory.blocks, images.blocks - first);
      for (std::int64_t row = 0; row < c.outs; row += memory.rows) {
        for (std::int64_t p = 0; p < kPoints; ++p)
          for (std::int64_t r = 0; r < memory.rows; r += kSumRows)
            sum_rows(results, row + r, images, first, blocks, p,
                     sums + p * memory.point_stride + r * blocks * kLanes, tile > 0);
        if (last) map_sums<kWindow>(c, sums, memory.point_stride, row, memory.rows, first, blocks, dweights);
      }
    }
  }
}

void weight_gradient(const WinogradConvolution& c, const float* x, const float* dy, float* dweights,
                     float* scratch) {
  (c.window == 3 ? weight_gradient_by<3> : weight_gradient_by<5>)(c, x, dy, dweights, scratch);
}

std::int64_t block() { return kLanes; }
std::size_t convolution_bytes(const WinogradConvolution& c) {
  return static_cast<std::size_t>(ConvolutionMemory(c).end) * sizeof(float);
}
std::size_t sums_bytes(const WinogradConvolution& c) {
  return static_cast<std::size_t>(SumsMemory(c).end) * sizeof(float);
}

}  // namespace
}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo::detail {

HWY_EXPORT(block);
HWY_EXPORT(convolution_bytes);
HWY_EXPORT(sums_bytes);
HWY_EXPORT(results);
HWY_EXPORT(image_gradient);
HWY_EXPORT(weight_gradient);

std::int64_t WinogradConvolution::block() { return HWY_DYNAMIC_DISPATCH(block)(); }

bool WinogradConvolution::fits() const {
  return (window == 3 || window == 5) && images > 0 && channels > 0 && outs > 0 && channels % block() == 0 &&
         outs % block() == 0;
}

std::size_t WinogradConvolution::results_scratch_bytes() const {
  return HWY_DYNAMIC_DISPATCH(convolution_bytes)(*this);
}
std::size_t WinogradConvolution::image_gradient_scratch_bytes() const {
  return HWY_DYNAMIC_DISPATCH(convolution_bytes)(turned(*this));
}
std::size_t WinogradConvolution::weight_gradient_scratch_bytes() const {
  return HWY_DYNAMIC_DISPATCH(sums_bytes)(*this);
}

void WinogradConvolution::results(const float* x, const float* weights, float* y, float* scratch) const {
  HWY_DYNAMIC_DISPATCH(results)(*this, x, weights, y, scratch);
}

void WinogradConvolution::image_gradient(const float* weights, const float* dy, float* dx,
                                         float* scratch) const {
  HWY_DYNAMIC_DISPATCH(image_gradient)(*this, weights, dy, dx, scratch);
}

void WinogradConvolution::weight_gradient(const float* x, const float* dy, float* dweights,
                                          float* scratch) const {
  HWY_DYNAMIC_DISPATCH(weight_gradient)(*this, x, dy, dweights, scratch);
}

}  // namespace kolo::detail
#endif  // HWY_ONCE
