// Layer normalization: a row at a time while it is in the cache.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include <kolo/core/kernels/cpu/loops/ask_for.h>
#include <kolo/core/kernels/cpu/loops/normalization_loops.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/normalization.h>

namespace kolo {
namespace {

struct Rows {
  std::int64_t count = 1;
  std::int64_t width;
  std::int64_t grain() const {
    return std::max<std::int64_t>(1, kElementGrain / std::max<std::int64_t>(1, width));
  }
};

Rows rows_of(const Shape& x) {
  Rows rows{1, x.dim(-1)};
  for (int axis = 0; axis + 1 < x.rank(); ++axis) rows.count *= x.dim(axis);
  return rows;
}

// Rows are computed on for longer than the processor looks ahead by itself: it is told of the rows that come.
constexpr std::int64_t kRowsAhead = 2;

template <typename T>
void normalize_row(const detail::NormalizationLoops<T>& loops, const T* row, std::int64_t width,
                   double epsilon, T& mean, T& inverse) {
  const double count = std::max<double>(1, static_cast<double>(width));
  mean = static_cast<T>(loops.sum(row, width) / count);
  const double variance = loops.squares(row, mean, width) / count;
  inverse = static_cast<T>(1 / std::sqrt(variance + epsilon));
}

template <typename T>
class LayerNorm final : public Kernel {
 public:
  explicit LayerNorm(const KernelInit& init) : epsilon_(init.attr<double>("epsilon")) {}

  void compute(KernelContext& context) override {
    const Rows rows = rows_of(context.input(0).shape());
    const T *x = context.input(0).data<T>(), *scale = context.input(1).data<T>(),
            *offset = context.input(2).data<T>();
    T *y = context.output(0).data<T>(), *mean = context.output(1).data<T>(),
      *inverse = context.output(2).data<T>();
    parallel_for(rows.count, rows.grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* row = x + i * rows.width;
        detail::ask_for(row + kRowsAhead * rows.width, rows.width);
        detail::ask_for(y + (i + kRowsAhead) * rows.width, rows.width);
        normalize_row(loops_, row, rows.width, epsilon_, mean[i], inverse[i]);
        loops_.row(row, mean[i], inverse[i], scale, offset, y + i * rows.width, rows.width);
      }
    });
  }

 private:
  const detail::NormalizationLoops<T>& loops_ = detail::normalization_loops<T>();
  double epsilon_;
};

// With r = inverse deviation, z = (x − mean) · r and g = dy · scale:
// doffset = Σ dy, dscale = Σ dy · z over the rows; dx = r · (g − mean of g − z · mean of g · z) along them.
template <typename T>
class LayerNormGrad final : public Kernel {
 public:
  explicit LayerNormGrad(const KernelInit& init) : adds_(init.num_inputs() > 5) {}

  void compute(KernelContext& context) override {
    const Rows rows = rows_of(context.input(0).shape());
    const T *x = context.input(0).data<T>(), *scale = context.input(1).data<T>(),
            *mean = context.input(2).data<T>(), *inverse = context.input(3).data<T>(),
            *dy = context.input(4).data<T>();
    T* dx = context.output(0).data<T>();
    const T* const added = adds_ ? context.input(5).data<T>() : nullptr;
    const auto width = static_cast<double>(rows.width);
    parallel_for(rows.count, rows.grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t at = i * rows.width;
        detail::ask_for(x + at + kRowsAhead * rows.width, rows.width);
        detail::ask_for(dy + at + kRowsAhead * rows.width, rows.width);
        double sums[2] = {0, 0};
        loops_.row_sums(dy + at, x + at, scale, mean[i], rows.width, sums);
        const double r = inverse[i];
        const RowGradient of{mean[i], inverse[i], static_cast<T>(sums[0] / width),
                             static_cast<T>(sums[1] * r * r / width)};
        if (added == nullptr) put(of, dy + at, x + at, scale, dx + at, rows.width);
        else add(of, dy + at, x + at, scale, added + at, dx + at, rows.width);
      }
    });
    sum_columns(context, rows);
  }

 private:
  struct RowGradient {
    T mean, inverse, a, b;
  };
  void put(const RowGradient& of, const T* dy, const T* x, const T* scale, T* dx, std::int64_t count) const {
    loops_.row_gradient(dy, x, scale, of.mean, of.inverse, of.a, of.b, dx, count);
  }
  // In pieces, since dx may be `added`.
  void add(const RowGradient& of, const T* dy, const T* x, const T* scale, const T* added, T* dx,
           std::int64_t width) const {
    T piece[kColumns];
    for (std::int64_t first = 0; first < width; first += kColumns) {
      const std::int64_t count = std::min(kColumns, width - first);
      put(of, dy + first, x + first, scale + first, piece, count);
      std::transform(piece, piece + count, added + first, dx + first, std::plus<T>());
    }
  }

  // Each thread its own columns: the sums do not depend on the number of threads.
  void sum_columns(KernelContext& context, const Rows& rows) const {
    const T *x = context.input(0).data<T>(), *mean = context.input(2).data<T>(),
            *inverse = context.input(3).data<T>(), *dy = context.input(4).data<T>();
    T *dscale = context.output(1).data<T>(), *doffset = context.output(2).data<T>();
    const std::int64_t blocks = (rows.width + kColumns - 1) / kColumns;
    parallel_for(blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        const std::int64_t first = block * kColumns, count = std::min(kColumns, rows.width - first);
        double of_dy[kColumns] = {}, of_product[kColumns] = {};
        for (std::int64_t i = 0; i < rows.count; ++i) {
          const std::int64_t at = i * rows.width + first;
          detail::ask_for(x + at + kRowsAhead * rows.width, count);
          detail::ask_for(dy + at + kRowsAhead * rows.width, count);
          loops_.add_row(dy + at, x + at, mean[i], inverse[i], of_dy, of_product, count);
        }
        for (std::int64_t j = 0; j < count; ++j) {
          dscale[first + j] = static_cast<T>(of_product[j]);
          doffset[first + j] = static_cast<T>(of_dy[j]);
        }
      }
    });
  }

  static constexpr std::int64_t kColumns = 256;
  const detail::NormalizationLoops<T>& loops_ = detail::normalization_loops<T>();
  const bool adds_;
};

// What fuse_norms makes, for devices whose kernels these are: a sum, row by row, and what the ops make of it.
template <typename T>
class SumLayerNorm final : public Kernel {
 public:
  explicit SumLayerNorm(const KernelInit& init) : epsilon_(init.attr<double>("epsilon")) {}

  void compute(KernelContext& context) override {
    const Rows rows = rows_of(context.input(0).shape());
    const T *x = context.input(0).data<T>(), *scale = context.input(1).data<T>(),
            *offset = context.input(2).data<T>(), *added = context.input(3).data<T>(),
            *bias = context.inputs.size() > 4 ? context.input(4).data<T>() : nullptr;
    T *y = context.output(0).data<T>(), *mean = context.output(1).data<T>(),
      *inverse = context.output(2).data<T>(), *sum = context.output(3).data<T>();
    parallel_for(rows.count, rows.grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t at = i * rows.width;
        for (std::int64_t j = 0; j < rows.width; ++j)
          sum[at + j] = (bias == nullptr ? x[at + j] : x[at + j] + bias[j]) + added[at + j];
        normalize_row(loops_, sum + at, rows.width, epsilon_, mean[i], inverse[i]);
        loops_.row(sum + at, mean[i], inverse[i], scale, offset, y + at, rows.width);
      }
    });
  }

 private:
  const detail::NormalizationLoops<T>& loops_ = detail::normalization_loops<T>();
  double epsilon_;
};

const RegisterKernel layer_norm_f32("LayerNorm", "CPU", {DType::f32}, make_kernel<LayerNorm<float>>);
const RegisterKernel layer_norm_f64("LayerNorm", "CPU", {DType::f64}, make_kernel<LayerNorm<double>>);
const RegisterKernel layer_norm_grad_f32("LayerNormGrad", "CPU", {DType::f32},
                                         make_kernel<LayerNormGrad<float>>);
const RegisterKernel layer_norm_grad_f64("LayerNormGrad", "CPU", {DType::f64},
                                         make_kernel<LayerNormGrad<double>>);
const RegisterKernel sum_layer_norm_f32(detail::kSumLayerNormOp, "CPU", {DType::f32},
                                        make_kernel<SumLayerNorm<float>>);
const RegisterKernel sum_layer_norm_f64(detail::kSumLayerNormOp, "CPU", {DType::f64},
                                        make_kernel<SumLayerNorm<double>>);
const RegisterKernel sum_layer_norm_grad_f32(detail::kSumLayerNormGradOp, "CPU", {DType::f32},
                                             make_kernel<LayerNormGrad<float>>);
const RegisterKernel sum_layer_norm_grad_f64(detail::kSumLayerNormGradOp, "CPU", {DType::f64},
                                             make_kernel<LayerNormGrad<double>>);

}  // namespace
}  // namespace kolo
