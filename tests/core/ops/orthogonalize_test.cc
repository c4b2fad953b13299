#include <kolo/core/ops/orthogonalize.h>

#include <gmock/gmock.h>

#include <cmath>

#include <kolo/core/base/error.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor basis_of(const Tensor& x) {
  return run_op({x}, [](Scope& s, const Outputs& in) { return orthogonalize(s, in[0]); });
}

double dot(const Tensor& a, std::int64_t i, const Tensor& b, std::int64_t j) {
  double sum = 0;
  for (std::int64_t row = 0; row < a.shape().dim(0); ++row)
    sum += a.data<double>()[row * a.shape().dim(1) + i] * b.data<double>()[row * b.shape().dim(1) + j];
  return sum;
}

void expect_orthonormal(const Tensor& q) {
  for (std::int64_t i = 0; i < q.shape().dim(1); ++i)
    for (std::int64_t j = 0; j < q.shape().dim(1); ++j) EXPECT_NEAR(dot(q, i, q, j), i == j ? 1 : 0, 1e-12);
}

TEST(Orthogonalize, KeepsTheDirectionOfASingleColumn) {
  const Tensor q = basis_of(Tensor::of<float>({2, 1}, {3, -4}));
  EXPECT_FLOAT_EQ(q.data<float>()[0], 0.6f);
  EXPECT_FLOAT_EQ(q.data<float>()[1], -0.8f);
}

TEST(Orthogonalize, SpansWhatTheColumnsSpan) {
  const Tensor x = test_numbers({7, 3});
  const Tensor q = basis_of(x);
  expect_orthonormal(q);
  for (std::int64_t column = 0; column < 3; ++column) {
    double along = 0;
    for (std::int64_t j = 0; j < 3; ++j) along += std::pow(dot(q, j, x, column), 2);
    EXPECT_NEAR(along, dot(x, column, x, column), 1e-12);
  }
}

TEST(Orthogonalize, FillsUpWhereColumnsSpanLess) {
  expect_orthonormal(basis_of(Tensor::zeros(DType::f64, {4, 3})));
  const Tensor q = basis_of(Tensor::of<double>({3, 3}, {1, 2, 0, 1, 2, 0, 1, 2, 5}));
  expect_orthonormal(q);
  EXPECT_NEAR(q.data<double>()[0], 1 / std::sqrt(3), 1e-12);
}

TEST(Orthogonalize, IsNaNWhereTheMatrixIsNotFinite) {
  const Tensor q = basis_of(Tensor::of<double>({3, 2}, {1, 0, HUGE_VAL, 1, 0, 0}));
  for (const double element : q.span<double>()) EXPECT_TRUE(std::isnan(element));
}

TEST(Orthogonalize, OfNoColumnIsEmpty) { EXPECT_EQ(basis_of(Tensor(DType::f64, {3, 0})).elements(), 0); }

TEST(Orthogonalize, KeepsTheShape) {
  expect_shape({{-1, 3}}, [](Scope& s, const Outputs& x) { return orthogonalize(s, x[0]); }, {-1, 3});
}

TEST(Orthogonalize, NeedsAsManyRowsAsColumns) {
  EXPECT_THAT(
      [] {
        basis_of(Tensor::zeros(DType::f32, {2, 3}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("at least as many rows as columns")));
}

}  // namespace
}  // namespace kolo
