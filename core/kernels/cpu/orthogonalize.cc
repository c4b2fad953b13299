#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

using Column = double*;

// What is left of a column, as a part of it, below which it counts as a sum of those before it.
constexpr double kNothing = 1e-6;

double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// One thread: the matrices are narrow, and all ranks get the same bits whatever their threads.
class Basis {
 public:
  Basis(std::vector<double>& columns, std::int64_t n) : columns_(columns), n_(n) {}

  void make_orthonormal(std::int64_t j) {
    const Column v = column(j);
    const double length = std::sqrt(dot(v, v, n_));
    if (!std::isfinite(length)) {
      for (std::int64_t i = 0; i < n_; ++i) v[i] = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    if (length > 0) {
      scale(v, 1 / length);
      const double left = remove_columns_before(j);
      if (left > kNothing) return scale(v, 1 / left);
    }
    take_unit_vector(j);
  }

 private:
  Column column(std::int64_t j) { return columns_.data() + j * n_; }
  void scale(Column v, double factor) {
    for (std::int64_t i = 0; i < n_; ++i) v[i] *= factor;
  }
  // Twice is enough (Kahan; Giraud et al., 2005). Returns the length of what is left.
  double remove_columns_before(std::int64_t j) {
    const Column v = column(j);
    for (int pass = 0; pass < 2; ++pass)
      for (std::int64_t k = 0; k < j; ++k) {
        const Column q = column(k);
        const double along = dot(q, v, n_);
        for (std::int64_t i = 0; i < n_; ++i) v[i] -= along * q[i];
      }
    return std::sqrt(dot(v, v, n_));
  }
  // Of the squared lengths of what j columns leave of the n unit vectors the average is (n − j) / n: some
  // unit vector leaves so much. With a NaN before it none does: the column then is what is left of the last.
  void take_unit_vector(std::int64_t j) {
    const Column v = column(j);
    const double enough = 0.5 * static_cast<double>(n_ - j) / static_cast<double>(n_);
    double left = 0;
    for (std::int64_t unit = 0; unit < n_; ++unit) {
      for (std::int64_t i = 0; i < n_; ++i) v[i] = i == unit ? 1 : 0;
      left = remove_columns_before(j);
      if (left * left >= enough || std::isnan(left)) break;
    }
    scale(v, 1 / left);
  }

  std::vector<double>& columns_;  // one behind the other
  std::int64_t n_;
};

template <typename T>
class OrthogonalizeKernel final : public Kernel {
 public:
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    const std::int64_t n = x.shape().dim(0), r = x.shape().dim(1);
    if (n < r) throw InvalidArgumentError("orthogonalize: x is {}; it has more columns than rows", x.shape());
    columns_.resize(static_cast<std::size_t>(n * r));
    const T* from = x.data<T>();
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < r; ++j) columns_[static_cast<std::size_t>(j * n + i)] = from[i * r + j];
    Basis basis(columns_, n);
    for (std::int64_t j = 0; j < r; ++j) basis.make_orthonormal(j);
    T* to = context.output(0).data<T>();
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < r; ++j)
        to[i * r + j] = static_cast<T>(columns_[static_cast<std::size_t>(j * n + i)]);
  }

 private:
  std::vector<double> columns_;  // keeps its capacity from step to step
};

template <typename T>
std::unique_ptr<Kernel> make(KernelInit&) {
  return std::make_unique<OrthogonalizeKernel<T>>();
}

const RegisterKernel orthogonalize_f32("Orthogonalize", "CPU", {DType::f32}, make<float>);
const RegisterKernel orthogonalize_f64("Orthogonalize", "CPU", {DType::f64}, make<double>);

}  // namespace
}  // namespace kolo
