#include <kolo/core/kernels/cpu/loops/normalization_loops.h>

#include <algorithm>

#include <kolo/core/kernels/cpu/loops/each_target-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

// Elements that are summed in their own type: with a sum for each lane of a vector, 64 additions each at
// most.
constexpr std::int64_t kPiece = 1024;

template <typename T>
double sum(const T* x, std::int64_t count) {
  double total = 0;
  for (std::int64_t from = 0; from < count; from += kPiece) {
    const std::int64_t to = std::min(from + kPiece, count);
    T piece = 0;
#pragma omp simd reduction(+ : piece)
    for (std::int64_t i = from; i < to; ++i) piece += x[i];
    total += piece;
  }
  return total;
}

template <typename T>
double squares(const T* x, T center, std::int64_t count) {
  double total = 0;
  for (std::int64_t from = 0; from < count; from += kPiece) {
    const std::int64_t to = std::min(from + kPiece, count);
    T piece = 0;
#pragma omp simd reduction(+ : piece)
    for (std::int64_t i = from; i < to; ++i) piece += (x[i] - center) * (x[i] - center);
    total += piece;
  }
  return total;
}

template <typename T>
void affine(const T* x, T center, T factor, T shift, T* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = (x[i] - center) * factor + shift;
}

template <typename T>
void gradient_sums(const T* dy, const T* x, T center, std::int64_t count, double* sums) {
  for (std::int64_t from = 0; from < count; from += kPiece) {
    const std::int64_t to = std::min(from + kPiece, count);
    T of_dy = 0, of_product = 0;
#pragma omp simd reduction(+ : of_dy, of_product)
    for (std::int64_t i = from; i < to; ++i) {
      of_dy += dy[i];
      of_product += dy[i] * (x[i] - center);
    }
    sums[0] += of_dy;
    sums[1] += of_product;
  }
}

template <typename T>
void gradient(const T* dy, const T* x, T center, T factor, T a, T b, T* dx, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = factor * (dy[i] - a - b * (x[i] - center));
}

template <typename T>
void row(const T* x, T center, T factor, const T* scale, const T* offset, T* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = (x[i] - center) * factor * scale[i] + offset[i];
}

template <typename T>
void row_sums(const T* dy, const T* x, const T* scale, T center, std::int64_t count, double* sums) {
  for (std::int64_t from = 0; from < count; from += kPiece) {
    const std::int64_t to = std::min(from + kPiece, count);
    T of_dy = 0, of_product = 0;
#pragma omp simd reduction(+ : of_dy, of_product)
    for (std::int64_t i = from; i < to; ++i) {
      of_dy += dy[i] * scale[i];
      of_product += dy[i] * scale[i] * (x[i] - center);
    }
    sums[0] += of_dy;
    sums[1] += of_product;
  }
}

template <typename T>
void row_gradient(const T* dy, const T* x, const T* scale, T center, T factor, T a, T b, T* dx,
                  std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = factor * (dy[i] * scale[i] - a - b * (x[i] - center));
}

template <typename T>
void add_row(const T* dy, const T* x, T center, T factor, double* of_dy, double* of_product,
             std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    of_dy[i] += dy[i];
    of_product[i] += dy[i] * (x[i] - center) * factor;
  }
}

template <typename T>
NormalizationLoops<T> loops() {
  return {sum<T>, squares<T>,  affine<T>,       gradient_sums<T>, gradient<T>,
          row<T>, row_sums<T>, row_gradient<T>, add_row<T>};
}
NormalizationLoops<float> float_loops() { return loops<float>(); }
NormalizationLoops<double> double_loops() { return loops<double>(); }

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo::detail {

HWY_EXPORT(float_loops);
HWY_EXPORT(double_loops);

template <>
const NormalizationLoops<float>& normalization_loops() {
  static const NormalizationLoops<float> loops = HWY_DYNAMIC_DISPATCH(float_loops)();
  return loops;
}
template <>
const NormalizationLoops<double>& normalization_loops() {
  static const NormalizationLoops<double> loops = HWY_DYNAMIC_DISPATCH(double_loops)();
  return loops;
}

}  // namespace kolo::detail
#endif
