// Convolutions of images in blocked order by loops of our own, where these are faster than oneDNN's.
#include <cstdint>
#include <memory>

#include <kolo/core/kernels/cpu/convolution.h>
#include <kolo/core/kernels/cpu/onednn.h>
#include <kolo/core/kernels/cpu/winograd.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/blocked.h>

namespace kolo {
namespace {

using detail::Convolution;
using detail::WinogradConvolution;

enum class Pass { results, images, weights };

template <Pass kPass>
Convolution blocked(const KernelInit& init) {
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
  return {c.images.dim(0), c.images.dim(1), c.results.dim(1), axis(c.rows), axis(c.cols)};
}

// Tiles of 4 × 4 results cover the results: below half of a tile's results, or with few tiles for which the
// windows are mapped, the direct algorithm is as fast. Of a core that does 195 to 236 GFLOP/s (Xeon, family 6
// model 167), oneDNN's direct algorithm, its own Winograd → this, forward / images / weights: 16 channels at
// 32 × 32 147, 105 → 209 / 145, 114 → 208 / 135, 146 → 217; 32 at 16 × 16 183, 225 → 291 / 170, 225 → 292 /
// 174, 203 → 300; 64 at 8 × 8 192, 279 → 409 / 182, 294 → 408 / 166, 266 → 364; 64 at 56 × 56 191, 363 → 435
// / 162, 362 → 433 / 157, 329 → 403; 256 at 14 × 14 182, 251 → 402 / 178, 258 → 394 / 173, 264 → 351; 512 at
// 7 × 7 (32 tiles) 166, 124 → 254 / 163, 134 → 250 / 128, 108 → 240.
bool gains_by_winograd(const WinogradConvolution& c) {
  constexpr std::int64_t kTile = 4, kFewestTiles = 32;
  const auto tiles = [](const WinogradConvolution::Axis& a) { return (a.outputs + kTile - 1) / kTile; };
  const std::int64_t for_image = tiles(c.rows) * tiles(c.cols);
  return c.images * for_image >= kFewestTiles &&
         2 * c.rows.outputs * c.cols.outputs >= for_image * kTile * kTile;
}

template <Pass kPass>
class WinogradKernel final : public Kernel {
 public:
  explicit WinogradKernel(const WinogradConvolution& convolution) : convolution_(convolution) {}

  static std::size_t scratch_bytes(const WinogradConvolution& c) {
    if constexpr (kPass == Pass::results) return c.results_scratch_bytes();
    else if constexpr (kPass == Pass::images) return c.image_gradient_scratch_bytes();
    else return c.weight_gradient_scratch_bytes();
  }

  void compute(KernelContext& context) override {
    const float *first = context.input(0).data<float>(), *second = context.input(1).data<float>();
    float *const to = context.output(0).data<float>(), *const scratch =
                                                           reinterpret_cast<float*>(context.scratch());
    if constexpr (kPass == Pass::results) convolution_.results(first, second, to, scratch);
    else if constexpr (kPass == Pass::images) convolution_.image_gradient(first, second, to, scratch);
    else convolution_.weight_gradient(first, second, to, scratch);
  }

 private:
  WinogradConvolution convolution_;
};

template <Pass kPass>
std::unique_ptr<Kernel> make_winograd(KernelInit& init) {
  if (init.is_marked(detail::kInBf16)) return init.decline("own Winograd computes in f32");
  if (init.threads() > 1) return init.decline("own Winograd runs on one thread");
  if (!detail::has_fast_winograd()) return init.decline("own Winograd needs AVX-512");
  if (!detail::has_elements(init)) return init.decline("own Winograd needs images with elements");
  const auto block = WinogradConvolution::block();
  if (init.attr<std::int64_t>("images_block") != block || init.attr<std::int64_t>("results_block") != block)
    return init.decline("own Winograd needs images and results in blocks");
  const Convolution c = blocked<kPass>(init);
  const auto moves_by_one = [](const WindowAxis& axis) {
    return axis.window == 3 && axis.stride == 1 && axis.pad_before <= 2;
  };
  const WinogradConvolution convolution = as_winograd(c);
  if (c.groups != 1 || !moves_by_one(c.rows) || !moves_by_one(c.cols) || !convolution.fits() ||
      !gains_by_winograd(convolution))
    return init.decline("own Winograd is for windows of 3 x 3 that move by one, and not for few results");
  init.request_scratch(WinogradKernel<kPass>::scratch_bytes(convolution));
  return std::make_unique<WinogradKernel<kPass>>(convolution);
}

const RegisterKernel results(kBlockedConv2dOp, "CPU", {DType::f32}, make_winograd<Pass::results>, 1);
const RegisterKernel images(kBlockedConv2dImagesOp, "CPU", {DType::f32}, make_winograd<Pass::images>, 1);
const RegisterKernel weights(kBlockedConv2dWeightsOp, "CPU", {DType::f32}, make_winograd<Pass::weights>, 1);

}  // namespace
}  // namespace kolo
