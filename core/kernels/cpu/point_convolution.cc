#include <kolo/core/kernels/cpu/point_convolution.h>

#include <omp.h>

#include <dnnl.hpp>

namespace kolo::detail {
namespace {

using dnnl::memory;

// Every row_step-th row and col_step-th column of images, channels last: those of `seen`, whose size is
// known to fit.
memory::desc pixels(DType dtype, const Shape& images, const Shape& seen, std::int64_t row_step,
                    std::int64_t col_step) {
  const std::int64_t channels = images.dim(1), row = images.dim(3) * channels, image = images.dim(2) * row;
  return {{images.dim(0), channels, seen.dim(2), seen.dim(3)},
          dtype == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32,
          memory::dims{image, 1, row_step * row, col_step * channels}};
}
memory::desc in_rows(const Shape& images, std::int64_t channels) {
  const Shape dense{images.dim(0), channels, images.dim(2), images.dim(3)};
  return pixels(DType::bf16, dense, dense, 1, 1);
}

}  // namespace

std::optional<OneDnnCall> point_weight_gradient(const PointConvolution& c) {
  const std::int64_t in = c.images.dim(1), out = c.results.dim(1),
                     count = c.results.dim(0) * c.results.dim(2) * c.results.dim(3);
  // oneDNN takes no strides that would reach beyond the image behind its last pixel.
  if (c.results.dim(2) * c.row_stride > c.images.dim(2) || c.results.dim(3) * c.col_stride > c.images.dim(3))
    return std::nullopt;
  // A product's threads take blocks of weights; those of a convolution share the images as well.
  constexpr std::int64_t kWeightsOfThread = 64 * 64;
  if (in * out < kWeightsOfThread * omp_get_max_threads()) return std::nullopt;

  const auto bf16 = memory::data_type::bf16;
  const dnnl::matmul::desc product({{out, count}, bf16, memory::dims{1, out}},
                                   {{count, in}, bf16, memory::dims{in, 1}},
                                   {{out, in}, memory::data_type::f32, memory::dims{in, 1}});
  const auto chosen = fast_description<dnnl::matmul::primitive_desc>(product);
  if (!chosen) return std::nullopt;
  // A primitive goes by its own description of what it reads: matrices here, which are images to a reorder.
  const memory::desc images = pixels(c.images_type, c.images, c.results, c.row_stride, c.col_stride),
                     results = pixels(c.results_type, c.results, c.results, 1, 1);
  return OneDnnCall(
      dnnl::matmul(chosen), chosen.scratchpad_desc(),
      {{DNNL_ARG_WEIGHTS, images, in_rows(c.results, in)}, {DNNL_ARG_SRC, results, in_rows(c.results, out)}},
      {{DNNL_ARG_DST, chosen.dst_desc(), chosen.dst_desc()}});
}

}  // namespace kolo::detail
