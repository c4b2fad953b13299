#include <kolo/core/ops/linalg.h>

#include <gmock/gmock.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>

#include "tests/core/gradient_check.h"
#include "tests/core/ops/compare_tensors.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Product {
  std::int64_t rows, inner, cols;
  bool transpose_a, transpose_b;
};

// c[i][j] = Σ a[i][k] · b[k][j]
Tensor expected_product(const Product& p, const Tensor& a, const Tensor& b) {
  Tensor c(DType::f64, {p.rows, p.cols});
  for (std::int64_t i = 0; i < p.rows; ++i)
    for (std::int64_t j = 0; j < p.cols; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < p.inner; ++k)
        sum += a.data<double>()[p.transpose_a ? k * p.rows + i : i * p.inner + k] *
               b.data<double>()[p.transpose_b ? j * p.inner + k : k * p.cols + j];
      c.data<double>()[i * p.cols + j] = sum;
    }
  return c;
}

class Matmul : public testing::TestWithParam<std::tuple<std::array<std::int64_t, 3>, bool, bool>> {
 protected:
  Matmul() {
    const auto [dims, transpose_a, transpose_b] = GetParam();
    product_ = {dims[0], dims[1], dims[2], transpose_a, transpose_b};
    a_ = test_numbers(transpose_a ? Shape{dims[1], dims[0]} : Shape{dims[0], dims[1]}, 1);
    b_ = test_numbers(transpose_b ? Shape{dims[2], dims[1]} : Shape{dims[1], dims[2]}, 2);
  }
  Output build(Scope& s, const Outputs& in) const {
    return matmul(s, in[0], in[1],
                  {.transpose_a = product_.transpose_a, .transpose_b = product_.transpose_b});
  }
  Product product_;
  Tensor a_, b_;
};

TEST_P(Matmul, IsTheSumOfProducts) {
  expect_both_types({a_, b_}, expected_product(product_, a_, b_), 1e-5,
                    [&](Scope& s, const Outputs& in) { return build(s, in); });
}

TEST_P(Matmul, HasTheGradientOfItsValues) {
  if (a_.elements() + b_.elements() > 100) GTEST_SKIP() << "central differences of small matrices are enough";
  expect_gradients({a_, b_}, [&](Scope& s, const Outputs& in) { return build(s, in); });
}

TEST_P(Matmul, HasTheSameGradientInBothTypes) {
  expect_same_gradients({a_, b_}, 1e-5, [&](Scope& s, const Outputs& in) { return build(s, in); });
}

// Single rows and columns, odd sizes, a block of the plain loop and one more, what is packed, no rows, no
// inner dimension.
INSTANTIATE_TEST_SUITE_P(Sizes, Matmul,
                         testing::Combine(testing::Values(std::array<std::int64_t, 3>{1, 1, 1},
                                                          std::array<std::int64_t, 3>{1, 5, 3},
                                                          std::array<std::int64_t, 3>{4, 1, 3},
                                                          std::array<std::int64_t, 3>{3, 4, 1},
                                                          std::array<std::int64_t, 3>{17, 65, 33},
                                                          std::array<std::int64_t, 3>{290, 40, 64},
                                                          std::array<std::int64_t, 3>{0, 4, 3},
                                                          std::array<std::int64_t, 3>{2, 0, 3}),
                                          testing::Bool(), testing::Bool()));

TEST(MatmulErrors, NamesBothShapesWhenInnerDimensionsDiffer) {
  Graph graph;
  Scope s(graph);
  const auto a = zeros(s, DType::f32, {2, 3}), b = zeros(s, DType::f32, {4, 5});
  EXPECT_THAT([&] { matmul(s, a, b); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr(
                  "matmul: a is [2,3] and b is [4,5]; the columns of a (3) must equal the rows of b (4)")));
}

struct BatchCase {
  Shape batch;
  std::int64_t rows, inner, cols;
};

class BatchMatmul : public testing::TestWithParam<std::tuple<BatchCase, bool, bool>> {
 protected:
  BatchMatmul() {
    const auto [c, transpose_a, transpose_b] = GetParam();
    product_ = {c.rows, c.inner, c.cols, transpose_a, transpose_b};
    a_ = test_numbers(with(transpose_a ? c.inner : c.rows, transpose_a ? c.rows : c.inner), 1);
    b_ = test_numbers(with(transpose_b ? c.cols : c.inner, transpose_b ? c.inner : c.cols), 2);
  }
  static Shape with(std::int64_t rows, std::int64_t cols) {
    std::vector<std::int64_t> dims = std::get<0>(GetParam()).batch.dims();
    dims.insert(dims.end(), {rows, cols});
    return Shape(dims);
  }
  Output build(Scope& s, const Outputs& in) const {
    return batch_matmul(s, in[0], in[1],
                        {.transpose_a = product_.transpose_a, .transpose_b = product_.transpose_b});
  }
  Product product_;
  Tensor a_, b_;
};

TEST_P(BatchMatmul, MultipliesEachPairOfMatrices) {
  const std::int64_t batch = std::get<0>(GetParam()).batch.elements();
  const Shape all{batch, product_.rows * product_.cols};
  Tensor y(DType::f64, all);
  const Tensor a = a_.reshaped({batch, product_.rows * product_.inner}),
               b = b_.reshaped({batch, product_.inner * product_.cols});
  for (std::int64_t i = 0; i < batch; ++i)
    y.rows(i, i + 1).copy_from(expected_product(product_, a.rows(i, i + 1), b.rows(i, i + 1)));
  expect_both_types({a_, b_}, y.reshaped(with(product_.rows, product_.cols)), 1e-5,
                    [&](Scope& s, const Outputs& in) { return build(s, in); });
}

TEST_P(BatchMatmul, HasTheGradientOfItsValues) {
  const auto built = [&](Scope& s, const Outputs& in) { return build(s, in); };
  expect_gradients({a_, b_}, built);
  expect_gradients({a_, b_}, built, {.known_shapes = false});
  expect_same_gradients({a_, b_}, 1e-5, built);
}

INSTANTIATE_TEST_SUITE_P(Shapes, BatchMatmul,
                         testing::Combine(testing::Values(BatchCase{{3}, 2, 4, 5}, BatchCase{{2, 3}, 3, 2, 1},
                                                          BatchCase{{1}, 2, 3, 2}, BatchCase{{0, 2}, 2, 3, 2},
                                                          BatchCase{{2}, 2, 0, 2}),
                                          testing::Bool(), testing::Bool()));

TEST(BatchMatmulErrors, NamesBothShapes) {
  Graph graph;
  Scope s(graph);
  const auto a = zeros(s, DType::f32, {2, 3, 4}), b = zeros(s, DType::f32, {3, 4, 5}),
             m = zeros(s, DType::f32, {4, 5});
  EXPECT_THAT([&] { batch_matmul(s, a, b); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[2,3,4]"), HasSubstr("[3,4,5]"))));
  EXPECT_THAT([&] { batch_matmul(s, a, m); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("at least 3 dimensions")));
  EXPECT_THAT(
      [&] { batch_matmul(s, a, a); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("the columns of a (4) must equal the rows of b (3)")));
}

TEST(BatchMatmulShape, IsKnownAsFarAsItsInputsAre) {
  const auto build = [](Scope& s, const Outputs& in) {
    return batch_matmul(s, in[0], in[1], {.transpose_b = true});
  };
  expect_shape({{-1, 4, 5, 6}, {2, -1, 7, 6}}, build, {2, 4, 5, 7});
  expect_shape({Shape::unknown_rank(), {2, 7, 6}}, build, {2, -1, 7});
}

TEST(MatmulErrors, NamesTheTransposedOperand) {
  Graph graph;
  Scope s(graph);
  const auto a = zeros(s, DType::f32, {2, 3}), b = zeros(s, DType::f32, {4, 5});
  EXPECT_THAT([&] { matmul(s, a, b, {.transpose_a = true}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("the columns of a transposed (2) must equal")));
}

TEST(MatmulErrors, RefusesVectorsAndMixedTypes) {
  Graph graph;
  Scope s(graph);
  const auto a = zeros(s, DType::f32, {2, 3}), v = zeros(s, DType::f32, {3}),
             d = zeros(s, DType::f64, {3, 2});
  EXPECT_THAT([&] { matmul(s, a, v); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("both must have 2 dimensions")));
  EXPECT_THAT([&] { matmul(s, a, d); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("f32"), HasSubstr("f64"))));
}

TEST(MatmulErrors, RefusesFedShapesThatDoNotFit) {
  Graph graph;
  Scope s(graph);
  const auto a = placeholder(s, DType::f32), b = placeholder(s, DType::f32);
  const auto c = matmul(s, a, b);
  Session session(graph);
  EXPECT_THAT(
      [&] {
        session.run(c, {{a, Tensor::zeros(DType::f32, {2, 3})}, {b, Tensor::zeros(DType::f32, {4, 5})}});
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[2,3]"), HasSubstr("[4,5]"))));
}

TEST(MatmulShape, IsKnownAsFarAsItsInputsAre) {
  Graph graph;
  Scope s(graph);
  const auto a = placeholder(s, DType::f32, {-1, 784}), b = zeros(s, DType::f32, {784, 10});
  EXPECT_EQ(matmul(s, a, b).shape(), (Shape{-1, 10}));
}

struct Case {
  Shape x;
  DataFormat format;
  std::int64_t channels;
  std::int64_t inner;  // elements between one channel and the next
};

class BiasAdd : public testing::TestWithParam<Case> {
 protected:
  const Tensor x_ = test_numbers(GetParam().x, 1);
  const Tensor bias_ = test_numbers({GetParam().channels}, 2);
  static Output build(Scope& s, const Outputs& in) { return bias_add(s, in[0], in[1], GetParam().format); }
};

TEST_P(BiasAdd, AddsEachChannelsNumber) {
  Tensor expected = x_.clone();
  for (std::int64_t i = 0; i < x_.elements(); ++i)
    expected.data<double>()[i] += bias_.data<double>()[i / GetParam().inner % GetParam().channels];
  expect_both_types({x_, bias_}, expected, 1e-6, build);
}

TEST_P(BiasAdd, HasTheGradientOfItsValues) { expect_gradients({x_, bias_}, build); }
TEST_P(BiasAdd, HasTheSameGradientInBothTypes) { expect_same_gradients({x_, bias_}, 1e-5, build); }

INSTANTIATE_TEST_SUITE_P(
    Shapes, BiasAdd,
    testing::Values(Case{{3, 5}, DataFormat::nchw, 5, 1}, Case{{4, 35}, DataFormat::nchw, 35, 1},
                    Case{{2, 3, 4}, DataFormat::nchw, 4, 1}, Case{{2, 3, 5, 7}, DataFormat::nchw, 3, 35},
                    Case{{2, 3, 5, 7}, DataFormat::nhwc, 7, 1}, Case{{0, 3, 2, 2}, DataFormat::nchw, 3, 4}));

TEST(BiasAddErrors, NamesBothShapesWhenChannelsDiffer) {
  Graph graph;
  Scope s(graph);
  const auto x = zeros(s, DType::f32, {2, 4}), bias = zeros(s, DType::f32, {3}),
             matrix = zeros(s, DType::f32, {4, 1});
  EXPECT_THAT([&] { bias_add(s, x, bias); }, ThrowsMessage<InvalidArgumentError>(AllOf(
                                                 HasSubstr("x is [2,4] and bias is [3]"), HasSubstr("(4)"))));
  EXPECT_THAT([&] { bias_add(s, x, matrix); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("bias is [4,1]")));
  EXPECT_THAT([&] { bias_add(s, bias, bias); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("at least 2 dimensions")));
}

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
