#include <kolo/core/kernels/cpu/onednn/point_convolution.h>

#include <omp.h>

#include <dnnl.hpp>

#include <kolo/core/ops/blocked.h>

namespace kolo::detail {
namespace {

using dnnl::memory;

// Those of the images' pixels that the window meets: every row_stride-th row and col_stride-th column.
memory::desc met_pixels(const PointConvolution& c) {
  const memory::desc all = images_in_order(c.images_type, c.images, kChannelsLast);
  const std::int64_t channels = c.images.dim(1), row = c.images.dim(3) * channels,
                     image = c.images.dim(2) * row;
  return {{c.images.dim(0), channels, c.results.dim(2), c.results.dim(3)},
          all.data_type(),
          memory::dims{image, 1, c.row_stride * row, c.col_stride * channels}};
}
// As many pixels as there are results, each a row of a matrix.
memory::desc in_rows(const PointConvolution& c, std::int64_t channels) {
  return images_in_order(DType::bf16, {c.results.dim(0), channels, c.results.dim(2), c.results.dim(3)},
                         kChannelsLast);
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
  const memory::desc images = met_pixels(c),
                     results = images_in_order(c.results_type, c.results, kChannelsLast);
  return OneDnnCall(dnnl::matmul(chosen), chosen.scratchpad_desc(),
                    {{DNNL_ARG_WEIGHTS, images, in_rows(c, in)}, {DNNL_ARG_SRC, results, in_rows(c, out)}},
                    {{DNNL_ARG_DST, chosen.dst_desc(), chosen.dst_desc()}});
}

}  // namespace kolo::detail
