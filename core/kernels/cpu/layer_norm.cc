#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include <kolo/core/kernels/cpu/normalization_loops.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/kernel.h>

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
    const double width = std::max<double>(1, static_cast<double>(rows.width));
    parallel_for(rows.count, rows.grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* row = x + i * rows.width;
        mean[i] = static_cast<T>(loops_.sum(row, rows.width) / width);
        const double variance = loops_.squares(row, mean[i], rows.width) / width;
        inverse[i] = static_cast<T>(1 / std::sqrt(variance + epsilon_));
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
  explicit LayerNormGrad(const KernelInit&) {}

  void compute(KernelContext& context) override {
    const Rows rows = rows_of(context.input(0).shape());
    const T *x = context.input(0).data<T>(), *scale = context.input(1).data<T>(),
            *mean = context.input(2).data<T>(), *inverse = context.input(3).data<T>(),
            *dy = context.input(4).data<T>();
    T* dx = context.output(0).data<T>();
    const auto width = static_cast<double>(rows.width);
    parallel_for(rows.count, rows.grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t at = i * rows.width;
        double sums[2] = {0, 0};
        loops_.row_sums(dy + at, x + at, scale, mean[i], rows.width, sums);
        const double r = inverse[i];
        loops_.row_gradient(dy + at, x + at, scale, mean[i], inverse[i], static_cast<T>(sums[0] / width),
                            static_cast<T>(sums[1] * r * r / width), dx + at, rows.width);
      }
    });
    sum_columns(context, rows);
  }

 private:
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
};

template <template <typename> class K, typename T>
std::unique_ptr<Kernel> make(KernelInit& init) {
  return std::make_unique<K<T>>(init);
}

const RegisterKernel layer_norm_f32("LayerNorm", "CPU", {DType::f32}, make<LayerNorm, float>);
const RegisterKernel layer_norm_f64("LayerNorm", "CPU", {DType::f64}, make<LayerNorm, double>);
const RegisterKernel layer_norm_grad_f32("LayerNormGrad", "CPU", {DType::f32}, make<LayerNormGrad, float>);
const RegisterKernel layer_norm_grad_f64("LayerNormGrad", "CPU", {DType::f64}, make<LayerNormGrad, double>);

}  // namespace
}  // namespace kolo
