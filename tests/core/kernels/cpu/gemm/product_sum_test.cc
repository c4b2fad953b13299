// Sums of products of several ranks' factors, and the updates that make such sums part by part.
#include <kolo/core/kernels/cpu/gemm/product_sum.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <kolo/core/kernels/cpu/gemm/thin_gemm.h>
#include <kolo/core/kernels/cpu/gemm/update_of_product.h>
#include <kolo/core/kernels/cpu/loops/update_rules.h>
#include <kolo/core/tensor/tensor.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"

namespace kolo::detail {
namespace {

constexpr float kUntouched = 4711;

Tensor numbers(const Shape& shape, int salt) {
  return converted<double>(test_numbers(shape, salt), DType::f32);
}

struct Sizes {
  std::int64_t rows, inputs, outputs;
  int factors;
};

class Operands {
 public:
  explicit Operands(const Sizes& sizes) : sizes_(sizes) {
    for (int f = 0; f < sizes.factors; ++f) {
      tensors_.push_back(numbers({sizes.rows * sizes.inputs}, 2 * f + 1));
      tensors_.push_back(numbers({sizes.rows * sizes.outputs}, 2 * f + 2));
      all_.push_back({tensors_[tensors_.size() - 2].data<float>(), tensors_.back().data<float>()});
    }
  }
  const std::vector<GradientFactors>& all() const { return all_; }
  // In f64, and beside it the sum of the terms' magnitudes.
  std::pair<double, double> gradient(std::int64_t i, std::int64_t j) const {
    double sum = 0, of_magnitudes = 0;
    for (const GradientFactors& factors : all_)
      for (std::int64_t k = 0; k < sizes_.rows; ++k) {
        const double term =
            static_cast<double>(factors.x[k * sizes_.inputs + i]) * factors.dy[k * sizes_.outputs + j];
        sum += term, of_magnitudes += std::abs(term);
      }
    return {sum, of_magnitudes};
  }

 private:
  const Sizes sizes_;
  std::vector<Tensor> tensors_;
  std::vector<GradientFactors> all_;
};

class SumOfProducts : public testing::TestWithParam<Sizes> {};

// As ranks divide it: each part by a call of its own, on one thread and on two.
TEST_P(SumOfProducts, ConsistsOfParts) {
  const Sizes& sizes = GetParam();
  const Operands operands(sizes);
  const ProductSum sum(sizes.rows, sizes.inputs, sizes.outputs);
  for (const int threads : {1, 2}) {
    const IntraOpThreads some(threads);
    const Tensor gradient = Tensor::zeros(DType::f32, {sizes.inputs, sizes.outputs});
    const Tensor scratch =
        Tensor::zeros(DType::u8, {static_cast<std::int64_t>(sum.scratch_bytes(sizes.factors))});
    for (float& element : gradient.span<float>()) element = kUntouched;
    const std::int64_t cut = sizes.inputs / 3;
    sum.run(operands.all(), 0, cut, gradient.data<float>(), reinterpret_cast<float*>(scratch.raw()));
    for (std::int64_t e = cut * sizes.outputs; e < gradient.elements(); ++e)
      ASSERT_EQ(gradient.data<float>()[e], kUntouched) << e;
    sum.run(operands.all(), cut, sizes.inputs - cut, gradient.data<float>(),
            reinterpret_cast<float*>(scratch.raw()));
    for (std::int64_t i = 0; i < sizes.inputs; ++i)
      for (std::int64_t j = i % 13; j < sizes.outputs; j += 13) {
        const auto [expected, magnitude] = operands.gradient(i, j);
        ASSERT_NEAR(gradient.data<float>()[i * sizes.outputs + j], expected, 1e-6 * magnitude)
            << i << ", " << j << " on " << threads << " threads";
      }
  }
}

// Those that linalg.cc streams, and others; the most columns that are packed at a time and more.
INSTANTIATE_TEST_SUITE_P(Sums, SumOfProducts,
                         testing::Values(Sizes{1, 192, 32, 1}, Sizes{64, 209, 96, 2}, Sizes{33, 200, 64, 3},
                                         Sizes{64, 192, 1056, 3}, Sizes{65, 64, 32, 2}, Sizes{128, 96, 48, 2},
                                         Sizes{16, 12, 10, 2}));

// As many rows as are streamed, for as many factors as there may be or fewer.
TEST(ProductSumTest, KeepsToItsScratchMemory) {
  const IntraOpThreads one(1);
  constexpr std::int64_t kBeyond = 4096;
  for (std::int64_t rows = 1; rows <= 64; rows += rows < 8 ? 1 : 11)
    for (const int factors : {1, 2, 3}) {
      const Sizes sizes{rows, 64, 4128, factors};
      const Operands operands(sizes);
      const ProductSum sum(sizes.rows, sizes.inputs, sizes.outputs);
      const auto floats = static_cast<std::int64_t>(sum.scratch_bytes(factors) / sizeof(float));
      const Tensor scratch = Tensor::zeros(DType::f32, {floats + kBeyond}),
                   gradient = Tensor::zeros(DType::f32, {sizes.inputs, sizes.outputs});
      sum.run(operands.all(), 0, sizes.inputs, gradient.data<float>(), scratch.data<float>());
      for (std::int64_t i = floats; i < floats + kBeyond; ++i)
        ASSERT_EQ(scratch.data<float>()[i], 0) << rows << " rows, " << factors << " factors";
    }
}

TEST(UpdateOfProductTest, AppliesTheAverageOfAllProducts) {
  const Sizes sizes{2, 50, 1024, 3};  // of which 21 rows are made at a time
  const Operands operands(sizes);
  const ThinGemm shape{sizes.rows, sizes.inputs, sizes.outputs};
  const float rate = 0.25F;
  for (const int threads : {1, 2}) {
    const IntraOpThreads some(threads);
    const UpdateOfProduct update(shape, sizes.factors, threads);
    const Tensor v = numbers({sizes.inputs * sizes.outputs}, 9);
    const Tensor before = v.clone();
    const Tensor scratch = Tensor::zeros(DType::u8, {static_cast<std::int64_t>(update.scratch_bytes())});
    const UpdatedRange<float> range{.v = v.data<float>(), .divisor = 4, .count = v.elements()};
    update.run(elements::GradientDescentRule<float>{rate}, range, operands.all(),
               reinterpret_cast<float*>(scratch.raw()));
    for (std::int64_t e = 0; e < v.elements(); e += 7) {
      const auto [gradient, magnitude] = operands.gradient(e / sizes.outputs, e % sizes.outputs);
      ASSERT_NEAR(v.data<float>()[e], before.data<float>()[e] - rate * gradient / 4, 1e-6 * (1 + magnitude))
          << e << " on " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace kolo::detail
