#include <kolo/core/kernels/cpu/loops/column_sums.h>

#include <kolo/core/kernels/cpu/loops/each_target-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

// Rows that are read side by side: a sum in memory is then touched once for eight numbers.
template <typename T>
void add_eight(const T* x, std::int64_t stride, std::int64_t columns, double* sums) {
  const T *b = x + stride, *c = b + stride, *d = c + stride, *e = d + stride, *f = e + stride,
          *g = f + stride, *h = g + stride;
#pragma omp simd
  for (std::int64_t j = 0; j < columns; ++j)
    sums[j] += ((x[j] + b[j]) + (c[j] + d[j])) + ((e[j] + f[j]) + (g[j] + h[j]));
}

template <typename T>
void add(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, double* sums) {
  std::int64_t row = 0;
  for (; row + 8 <= rows; row += 8) add_eight(x + row * stride, stride, columns, sums);
  for (; row < rows; ++row) {
#pragma omp simd
    for (std::int64_t j = 0; j < columns; ++j) sums[j] += x[row * stride + j];
  }
}

void add_f32(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, double* sums) {
  add(x, rows, stride, columns, sums);
}
void add_f64(const double* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, double* sums) {
  add(x, rows, stride, columns, sums);
}

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo::detail {

HWY_EXPORT(add_f32);
HWY_EXPORT(add_f64);

template <>
void add_columns(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, double* sums) {
  HWY_DYNAMIC_DISPATCH(add_f32)(x, rows, stride, columns, sums);
}
template <>
void add_columns(const double* x, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                 double* sums) {
  HWY_DYNAMIC_DISPATCH(add_f64)(x, rows, stride, columns, sums);
}

}  // namespace kolo::detail
#endif
