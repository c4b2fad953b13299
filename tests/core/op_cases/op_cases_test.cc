// Each case on the CPU, and where there is a virtual GPU, on that.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/core/op_cases/check.h"

namespace kolo::op_cases {

void PrintTo(const Case& tested, std::ostream* to) { *to << tested.name; }

namespace {

class OpCases : public ::testing::TestWithParam<Case> {};

TEST_P(OpCases, AreExactInF32) {
  const bool on_gpu = std::getenv("KOLO_VIRTUAL_GPUS") != nullptr;
  if (!on_gpu && GetParam().judge == Judge::drawn) GTEST_SKIP() << "f32 and f64 draw other numbers";
  const Verdict found = check(GetParam(), on_gpu ? "/gpu:0" : "/cpu:0", 2);
  EXPECT_LE(found.error, found.limit) << found.unit;
}
INSTANTIATE_TEST_SUITE_P(All, OpCases, ::testing::ValuesIn(all_cases(/*large=*/false)),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kolo::op_cases
