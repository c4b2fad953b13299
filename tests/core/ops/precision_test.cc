// GraphOptions::precision: what products in bf16 are products of.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/kernels/cpu/onednn/native_bf16.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/gradient_check.h"
#include "tests/core/kernels_of.h"

namespace kolo {
namespace {

constexpr double kSumsInF32 = 1e-5, kRoundedOnceMore = 1.0 / 256;

// To the nearest number whose last 16 bits are 0; of two, to the even one.
double rounded_to_bf16(double number) {
  auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(number));
  bits += 0x7FFF + (bits >> 16 & 1);
  return std::bit_cast<float>(bits & 0xFFFF0000);
}

struct Product {
  Shape a, b;
  std::function<Output(Scope&, Output, Output)> build;
};

Tensor factor(const Shape& shape, int salt, bool rounded) {
  Tensor numbers = test_numbers(shape, salt);
  if (rounded)
    for (double& number : numbers.span<double>()) number = rounded_to_bf16(number);
  return numbers;
}

// The product and its gradients to both factors, for a gradient of it that is given.
std::vector<Tensor> outcome(const Product& product, DType type, bool rounded, Precision precision) {
  Graph graph;
  Scope s(graph);
  const auto input = [&](const Shape& shape, int salt) {
    const Tensor numbers = factor(shape, salt, rounded);
    return std::pair(placeholder(s, type, shape),
                     type == DType::f64 ? numbers : detail::converted<double>(numbers, type));
  };
  const auto a = input(product.a, 1), b = input(product.b, 2);
  const Output y = product.build(s, a.first, b.first);
  const auto dy = input(y.shape(), 3);
  const Outputs to_factors = gradients(s, {y}, {a.first, b.first}, {dy.first});
  SessionConfig config;
  config.graph_options.precision = precision;
  Session session(graph, config);
  return session.run({y, to_factors[0], to_factors[1]}, {a, b, dy});
}

double largest_difference(const Tensor& one, const Tensor& other) {
  const Tensor a = detail::as_double(one), b = detail::as_double(other);
  double most = 0, size = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    most = std::max(most, std::abs(a.data<double>()[i] - b.data<double>()[i]));
    size = std::max(size, std::abs(b.data<double>()[i]));
  }
  return most / size;
}

class ProductsInBf16 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!detail::has_native_bf16()) GTEST_SKIP() << "this CPU has no instructions for bf16";
  }
  const KernelsOf library_{detail::KernelSource::library};  // which leaves no convolution in f32
  // limits: of the product and the gradients to its factors, relative to the largest number.
  static void expect_products_of_rounded_factors(const Product& product, const std::vector<double>& limits) {
    const auto bf16 = outcome(product, DType::f32, false, Precision::bf16),
               f32 = outcome(product, DType::f32, false, Precision::f32),
               expected = outcome(product, DType::f64, true, Precision::f32);
    for (std::size_t i = 0; i < bf16.size(); ++i) {
      EXPECT_LT(largest_difference(bf16[i], expected[i]), limits[i]) << "of result " << i;
      EXPECT_GT(largest_difference(bf16[i], f32[i]), 1e-4) << "result " << i << " is f32's";
    }
  }
  static void expect_products_of_rounded_factors(const Product& product) {
    expect_products_of_rounded_factors(product, {kSumsInF32, kSumsInF32, kSumsInF32});
  }
  static Product convolution(const Shape& images, const Shape& weights, const Conv2dOptions& options) {
    return {images, weights, [options](Scope& s, Output x, Output w) { return conv2d(s, x, w, options); }};
  }
  static void expect_convolution(const Product& product) {
    expect_products_of_rounded_factors(product, {kRoundedOnceMore, kRoundedOnceMore, kSumsInF32});
  }
};

TEST_F(ProductsInBf16, OfMatricesAreThoseOfRoundedFactors) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      SCOPED_TRACE(::testing::Message() << transpose_a << " " << transpose_b);
      expect_products_of_rounded_factors(
          {transpose_a ? Shape{70, 33} : Shape{33, 70}, transpose_b ? Shape{51, 70} : Shape{70, 51},
           [=](Scope& s, Output a, Output b) {
             return matmul(s, a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b});
           }});
    }
}

TEST_F(ProductsInBf16, OfStackedMatrices) {
  expect_products_of_rounded_factors(
      {{3, 17, 20}, {3, 20, 9}, [](Scope& s, Output a, Output b) { return batch_matmul(s, a, b); }});
}

TEST_F(ProductsInBf16, OfConvolutions) { expect_convolution(convolution({2, 32, 9, 9}, {16, 32, 3, 3}, {})); }

TEST_F(ProductsInBf16, OfConvolutionsOfFewChannels) {
  expect_convolution(convolution({2, 3, 12, 10}, {16, 3, 5, 5}, {.strides = {2, 2}}));
}

// As many weights as give each thread its part: their gradient is a product of matrices.
TEST_F(ProductsInBf16, OfConvolutionsOfOnePixel) {
  for (const std::int64_t stride : {1, 2, 3}) {
    SCOPED_TRACE(stride);
    expect_convolution(convolution({2, 128, 8, 6}, {256, 128, 1, 1}, {.strides = {2, stride}}));
  }
  expect_convolution(convolution({2, 128, 5, 7}, {256, 128, 1, 1}, {}));
}

TEST_F(ProductsInBf16, OfConvolutionsOfOnePixelWhoseLastStrideLeavesTheImage) {
  expect_convolution(convolution({2, 128, 9, 7}, {256, 128, 1, 1}, {.strides = {2, 2}}));
}

TEST_F(ProductsInBf16, OfNothingAreThereToo) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {-1, 3}), w = placeholder(s, DType::f32, {3, 2}),
               squares = mul(s, w, w), y = matmul(s, x, squares);
  SessionConfig config;
  config.graph_options.precision = Precision::bf16;
  Session session(graph, config);
  const Outputs to = gradients(s, {y}, {x, w});
  const auto values = session.run({y, to[0], to[1]},
                                  {{x, Tensor(DType::f32, {0, 3})}, {w, Tensor::zeros(DType::f32, {3, 2})}});
  EXPECT_EQ(values[0].shape(), Shape({0, 2}));
  EXPECT_EQ(values[1].shape(), Shape({0, 3}));
  EXPECT_EQ(values[2].shape(), Shape({3, 2}));
}

TEST_F(ProductsInBf16, OfF64StayInF64) {
  const Product product{{8, 9}, {9, 7}, [](Scope& s, Output a, Output b) { return matmul(s, a, b); }};
  const auto lower = outcome(product, DType::f64, false, Precision::bf16),
             f64 = outcome(product, DType::f64, false, Precision::f32);
  EXPECT_EQ(largest_difference(lower[0], f64[0]), 0);
}

TEST(Precision, HasNames) {
  for (const Precision precision : {Precision::automatic, Precision::f32, Precision::tf32, Precision::bf16})
    EXPECT_EQ(precision_named(precision_name(precision)), precision);
  EXPECT_EQ(precision_named("fp16"), std::nullopt);
}

TEST(Precision, IsRefusedWhereTheCpuHasNoInstructionsForIt) {
  Graph graph;
  SessionConfig config;
  config.graph_options.precision = Precision::bf16;
  if (detail::has_native_bf16()) EXPECT_NO_THROW(Session(graph, config));
  else
    EXPECT_THAT([&] { Session(graph, config); },
                ::testing::ThrowsMessage<FailedPreconditionError>(::testing::HasSubstr("AVX512_BF16")));
}

}  // namespace
}  // namespace kolo
