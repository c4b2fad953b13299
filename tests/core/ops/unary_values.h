// Checks a function of one number over a range, in f32 and f64.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/core/run_op.h"

namespace kolo {

struct UnaryCase {
  const char* name;
  Output (*op)(const Scope&, Output);
  double (*expected)(double);
  double low, high;
};

inline std::string case_name(const ::testing::TestParamInfo<UnaryCase>& info) { return info.param.name; }

/// The odd number of elements goes through the end of a vector loop too. f32: to 4 units in the last place,
/// and below the normal numbers to an absolute bound; f64 to 1e-15.
inline void expect_values(const UnaryCase& unary) {
  constexpr int kCount = 1003;
  Tensor x32(DType::f32, {kCount}), x64(DType::f64, {kCount});
  for (int i = 0; i < kCount; ++i) {
    x32.data<float>()[i] = static_cast<float>(unary.low + (unary.high - unary.low) * i / (kCount - 1));
    x64.data<double>()[i] = x32.data<float>()[i];
  }
  const auto build = [&](Scope& s, const Outputs& in) { return unary.op(s, in[0]); };
  const Tensor y32 = run_op({x32}, build), y64 = run_op({x64}, build);
  for (int i = 0; i < kCount; ++i) {
    const double right = unary.expected(x64.data<double>()[i]);
    EXPECT_NEAR(y32.data<float>()[i], right, std::max(std::abs(right) * 4 * 1.2e-7, 1e-37))
        << unary.name << " of " << x32.data<float>()[i];
    EXPECT_NEAR(y64.data<double>()[i], right, std::abs(right) * 1e-15)
        << unary.name << " of " << x64.data<double>()[i];
  }
}

}  // namespace kolo
