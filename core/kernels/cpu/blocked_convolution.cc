// Convolutions of images in blocked order by loops of our own, where these are faster than oneDNN's.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include <kolo/core/kernels/cpu/conv/blocked_pointwise.h>
#include <kolo/core/kernels/cpu/conv/winograd.h>
#include <kolo/core/kernels/cpu/convolution.h>
#include <kolo/core/kernels/cpu/gemm/gemm_parts.h>
#include <kolo/core/kernels/cpu/onednn/onednn.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/own_kernels.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/bf16.h>
#include <kolo/core/ops/blocked.h>

namespace kolo {
namespace {

using detail::BlockedPointwise;
using detail::Convolution;
using detail::WinogradConvolution;

enum class Pass { results, images, weights };

template <Pass kPass>
Convolution convolution_of(const KernelInit& init) {
  if constexpr (kPass == Pass::results)
    return Convolution::of(init, init.input_shape(0), init.input_shape(1), init.output_shape(0));
  else if constexpr (kPass == Pass::images)
    return Convolution::of(init, init.output_shape(0), init.input_shape(0), init.input_shape(1));
  else return Convolution::of(init, init.input_shape(0), init.output_shape(0), init.input_shape(1));
}

WinogradConvolution as_winograd(const Convolution& c) {
  const auto axis = [](const WindowAxis& a) {
    return WinogradConvolution::Axis{a.size, a.outputs, a.pad_before};
  };
  return {c.rows.window, c.images.dim(0), c.images.dim(1), c.results.dim(1), axis(c.rows), axis(c.cols)};
}

// Tiles of results cover the results: where these fill less than half of them, or the windows are mapped for
// few tiles, the direct algorithm is as fast. Of a core that does 195 to 236 GFLOP/s (Xeon, family 6 model
// 167), oneDNN's direct algorithm, its own Winograd → this, forward / images / weights; windows of 3 × 3: 16
// channels at 32 × 32 147, 105 → 209 / 145, 114 → 208 / 135, 146 → 217; 32 at 16 × 16 183, 225 → 291 / 170,
// 225 → 292 / 174, 203 → 300; 64 at 8 × 8 192, 279 → 409 / 182, 294 → 408 / 166, 266 → 364; 64 at 56 × 56
// 191, 363 → 435 / 162, 362 → 433 / 157, 329 → 403; 256 at 14 × 14 182, 251 → 402 / 178, 258 → 394 / 173, 264
// → 351; 512 at 7 × 7 (32 tiles) 166, 124 → 254 / 163, 134 → 250 / 128, 108 → 240. Of 5 × 5, where oneDNN has
// the direct one alone: 32 → 64 channels at 14 × 14 208 → 340 / 195 → 336 / 197 → 312; 64 at 56 × 56 174 →
// 379 / 173 → 383 / 168 → 331.
bool gains_by_winograd(const WinogradConvolution& c) {
  constexpr std::int64_t kFewestTiles = 32;
  const std::int64_t for_image = c.tiles_along(c.rows) * c.tiles_along(c.cols);
  return c.images * for_image >= kFewestTiles &&
         2 * c.rows.outputs * c.cols.outputs >= for_image * c.tile() * c.tile();
}

// Rows and columns of a window that Winograd's algorithm may take.
bool moves_by_one(const WindowAxis& rows, const WindowAxis& cols) {
  const auto fits = [](const WindowAxis& axis) { return axis.stride == 1 && axis.pad_before < axis.window; };
  return rows.window == cols.window && fits(rows) && fits(cols);
}

// A band of a tile has 14 pixels of one image. The same core, oneDNN → this, forward / images / weights: 64
// channels → 64 at 56 × 56 143 → 168 / 142 → 167 / 112 → 143; 64 → 256 171 → 181 / 144 → 166 / 137 → 162; 256
// → 64 145 → 167 / 170 → 183 / 135 → 162; 128 → 512 at 28 × 28 184 → 186 / 151 → 177 / 161 → 172; 512 → 128
// 150 → 178 / 184 → 188 / 163 → 172; 256 → 1024 at 14 × 14 173 → 175 / 156 → 174 / 152 → 152; 1024 → 256 161
// → 175 / 173 → 179 / 141 → 154; 512 → 2048 at 7 × 7 133 → 155 / 133 → 155 / 127 → 149; 2048 → 512 141 → 160
// / 123 → 158 / 96 → 159; every other pixel, 256 → 512 at 56 × 56 164 → 165 / 122 → 140 / 144 → 157.
bool gains_by_points(const BlockedPointwise& c) {
  constexpr std::int64_t kFewestPixels = 14;
  return c.rows.outputs * c.cols.outputs >= kFewestPixels;
}
bool is_point(const WindowAxis& axis) { return axis.window == 1 && axis.pad_before == 0; }

BlockedPointwise as_points(const Convolution& c) {
  const auto axis = [](const WindowAxis& a) { return BlockedPointwise::Axis{a.size, a.outputs, a.stride}; };
  return {c.images.dim(0), c.images.dim(1), c.results.dim(1), axis(c.rows), axis(c.cols)};
}

// Of `own` what piece n of `pieces` computes: some of the images.
template <typename Own>
Own piece_of(Own own, int n, int pieces) {
  own.images = detail::Part(own.images, n, pieces).count;
  return own;
}
template <typename Own>
std::int64_t image_elements(const Own& own) {
  return own.channels * own.rows.size * own.cols.size;
}
template <typename Own>
std::int64_t result_elements(const Own& own) {
  return own.outs * own.rows.outputs * own.cols.outputs;
}

// Each thread computes with images of its own; gradients of weights are added up in the end.
template <typename Own, Pass kPass>
class OwnConvolution final : public Kernel {
 public:
  OwnConvolution(KernelInit& init, const Own& own)
      : own_(own), results_(init.output_shape(0).elements()), pieces_(init.threads()) {
    // A piece has one of two sizes.
    const std::size_t bytes = std::max(scratch_bytes(piece_of(own, 0, pieces_)),
                                       scratch_bytes(piece_of(own, pieces_ - 1, pieces_)));
    constexpr std::size_t kLine = 64 / sizeof(float);
    piece_floats_ = (bytes / sizeof(float) + kLine - 1) / kLine * kLine;
    const std::int64_t sums = kPass == Pass::weights ? (pieces_ - 1) * results_ : 0;
    init.request_scratch((pieces_ * piece_floats_ + static_cast<std::size_t>(sums)) * sizeof(float));
  }

  void compute(KernelContext& context) override {
    const float *first = context.input(0).data<float>(), *second = context.input(1).data<float>();
    float* const to = context.output(0).data<float>();
    float* const scratch = reinterpret_cast<float*>(context.scratch());
    float* const sums = scratch + pieces_ * piece_floats_;
    parallel_for(pieces_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        const Own own = piece_of(own_, static_cast<int>(n), pieces_);
        const std::int64_t image = detail::Part(own_.images, n, pieces_).first;
        float* const memory = scratch + n * piece_floats_;
        const std::int64_t x = image * image_elements(own_), y = image * result_elements(own_);
        if constexpr (kPass == Pass::results) own.results(first + x, second, to + y, memory);
        else if constexpr (kPass == Pass::images) image_gradient(own, context, x, y, memory);
        else own.weight_gradient(first + x, second + y, n == 0 ? to : sums + (n - 1) * results_, memory);
      }
    });
    if (kPass == Pass::weights && pieces_ > 1) add_up(sums, to);
  }

 private:
  // Of the images from element `x` on, whose results are those from `y` on.
  static void image_gradient(const Own& own, const KernelContext& context, std::int64_t x, std::int64_t y,
                             float* memory) {
    const float *const weights = context.input(0).data<float>(), *const dy =
                                                                     context.input(1).data<float>() + y;
    float* const dx = context.output(0).data<float>() + x;
    if constexpr (std::is_same_v<Own, BlockedPointwise>) {
      const auto tail = [&](int i) {
        return i < context.num_inputs() ? context.input(i).data<float>() + x : nullptr;
      };
      own.image_gradient(weights, dy, {.added = tail(2), .y = tail(3)}, dx, memory);
    } else {
      own.image_gradient(weights, dy, dx, memory);
    }
  }

  static std::size_t scratch_bytes(const Own& own) {
    if constexpr (kPass == Pass::results) return own.results_scratch_bytes();
    else if constexpr (kPass == Pass::images) return own.image_gradient_scratch_bytes();
    else return own.weight_gradient_scratch_bytes();
  }

  void add_up(const float* sums, float* to) const {
    parallel_for(results_, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      for (int n = 0; n + 1 < pieces_; ++n)
        for (std::int64_t i = begin; i < end; ++i) to[i] += sums[n * results_ + i];
    });
  }

  Own own_;
  std::int64_t results_;  // elements of what the kernel makes
  int pieces_;
  std::size_t piece_floats_;
};

template <typename Own, Pass kPass>
std::unique_ptr<Kernel> make_preferred(KernelInit& init, const Own& own, detail::OwnKernel kernel) {
  if (!detail::prefers_own(kernel)) return init.decline(detail::why_not_own(kernel));
  return std::make_unique<OwnConvolution<Own, kPass>>(init, own);
}

template <Pass kPass>
std::unique_ptr<Kernel> make_own(KernelInit& init) {
  if (init.is_marked(kInBf16)) return init.decline("the own convolutions compute in f32");
  if (!detail::has_elements(init)) return init.decline("the own convolutions need images with elements");
  constexpr std::int64_t kAvx512 = 16;
  const std::int64_t block = WinogradConvolution::block();
  if (block != kAvx512)
    return init.decline("the own convolutions were measured to be faster with AVX-512 alone");
  if (init.attr<std::int64_t>("images_block") != block || init.attr<std::int64_t>("results_block") != block)
    return init.decline("the own convolutions need images and results in blocks");
  const Convolution c = convolution_of<kPass>(init);
  const int threads = init.threads();
  if (c.images.dim(0) % threads != 0 && c.images.dim(0) < 4 * threads)
    return init.decline("the own convolutions need images for each thread");
  if (c.groups != 1) return init.decline("the own convolutions have no groups");
  const WinogradConvolution winograd = as_winograd(c);
  const bool has_tail = init.num_inputs() > 2;
  if (!has_tail && moves_by_one(c.rows, c.cols) && winograd.fits() &&
      gains_by_winograd(piece_of(winograd, 0, threads)))
    return make_preferred<WinogradConvolution, kPass>(init, winograd, detail::OwnKernel::winograd);
  const BlockedPointwise points = as_points(c);
  if (is_point(c.rows) && is_point(c.cols) && points.fits() && gains_by_points(points) &&
      (!has_tail || points.takes_all_pixels()))
    return make_preferred<BlockedPointwise, kPass>(init, points, detail::OwnKernel::pointwise);
  return init.decline(
      "the own convolutions are for windows of one pixel, and of 3 x 3 and 5 x 5 that move by one");
}

const RegisterKernel results(kBlockedConv2dOp, "CPU", {DType::f32}, make_own<Pass::results>, 1);
const RegisterKernel images(kBlockedConv2dImagesOp, "CPU", {DType::f32}, make_own<Pass::images>, 1);
const RegisterKernel weights(kBlockedConv2dWeightsOp, "CPU", {DType::f32}, make_own<Pass::weights>, 1);

}  // namespace
}  // namespace kolo
