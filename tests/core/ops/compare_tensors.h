// Computed tensors against expected ones, in f32 and f64.
#pragma once

#include <gtest/gtest.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {

inline Tensor to_f32(const Tensor& numbers) { return detail::converted<double>(numbers, DType::f32); }

/// Each element within `tolerance` of the expected one (f64), relative to the larger of 1 and that.
inline void expect_near(const Tensor& actual, const Tensor& expected, double tolerance) {
  ASSERT_EQ(actual.shape(), expected.shape());
  const Tensor values = detail::as_double(actual);
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    const double right = expected.data<double>()[i];
    ASSERT_NEAR(values.data<double>()[i], right, tolerance * std::max(1.0, std::abs(right)))
        << "element " << i << " of " << expected.shape().to_string();
  }
}

/// The op in f32 (through oneDNN, where it can) and in f64 (plain loops) against `expected`.
template <typename Build>
void expect_both_types(const std::vector<Tensor>& inputs, const Tensor& expected, double f32_tolerance,
                       const Build& build) {
  std::vector<Tensor> narrow;
  for (const Tensor& input : inputs) narrow.push_back(to_f32(input));
  expect_near(run_op(inputs, build), expected, 1e-12);
  expect_near(run_op(narrow, build), expected, f32_tolerance);
  std::vector<KnownInput> known;
  for (const Tensor& input : inputs) known.emplace_back(input.shape(), input.dtype());
  expect_shape(known, build, expected.shape());
}

/// The gradients with respect to all inputs are the same in f32 as in f64, for a dy that tells all elements
/// apart.
template <typename Build>
void expect_same_gradients(const std::vector<Tensor>& inputs, double tolerance, const Build& build) {
  const auto gradient_of = [&](std::size_t k, DType dtype) {
    std::vector<Tensor> values;
    for (const Tensor& input : inputs) values.push_back(dtype == DType::f32 ? to_f32(input) : input);
    return run_op(values, [&](Scope& s, const Outputs& xs) {
      const Output y = build(s, xs);
      const Tensor dy = test_numbers(y.shape(), 5);
      return gradients(s, {y}, {xs[k]}, {constant(s, dtype == DType::f32 ? to_f32(dy) : dy)})[0];
    });
  };
  for (std::size_t k = 0; k < inputs.size(); ++k)
    expect_near(gradient_of(k, DType::f32), gradient_of(k, DType::f64), tolerance);
}

}  // namespace kolo
