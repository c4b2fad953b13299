#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/matmul.h>

#include "tests/core/ops/compare_tensors.h"

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

// Single rows and columns, odd sizes, a block of the plain loop and one more, no rows, no inner dimension.
INSTANTIATE_TEST_SUITE_P(Sizes, Matmul,
                         testing::Combine(testing::Values(std::array<std::int64_t, 3>{1, 1, 1},
                                                          std::array<std::int64_t, 3>{1, 5, 3},
                                                          std::array<std::int64_t, 3>{4, 1, 3},
                                                          std::array<std::int64_t, 3>{3, 4, 1},
                                                          std::array<std::int64_t, 3>{17, 65, 33},
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

}  // namespace
}  // namespace kolo
