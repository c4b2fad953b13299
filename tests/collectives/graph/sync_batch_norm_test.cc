// On one rank; tests/mpi has several.
#include <kolo/collectives/graph/collective_ops.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Totals of two channels with the elements 1, 3, 5 and 0, 0, 6.
Tensor totals() { return Tensor::of<double>({5}, {9, 6, 35, 36, 3}); }

TEST(SyncBatchStatistics, FollowFromTheTotals) {
  for (const int output : {0, 1, 2, 3}) {
    const Tensor value = run_op({totals(), Tensor::of<double>({2}, {1, 2}), Tensor::of<double>({2}, {3, 4})},
                                [&](Scope& s, const Outputs& x) {
                                  return s.add("SyncBatchStatistics", x, {{"momentum", 0.75}}).output(output);
                                });
    const std::vector<std::vector<double>> expected = {{3, 2},
                                                       {8.0 / 3, 8},
                                                       {0.75 * 1 + 0.25 * 3, 0.75 * 2 + 0.25 * 2},
                                                       {0.75 * 3 + 0.25 * 4, 0.75 * 4 + 0.25 * 12}};
    for (int c = 0; c < 2; ++c) EXPECT_NEAR(value.span<double>()[c], expected[output][c], 1e-12) << output;
  }
}

TEST(SyncBatchStatistics, AreOneNumberForEachChannel) {
  const auto build = [](Scope& s, const Outputs& x) {
    return s.add("SyncBatchStatistics", x, {{"momentum", 0.5}}).output(1);
  };
  expect_shape({{{7}, DType::f64}, {3}, {3}}, build, {3});
}

TEST(SyncBatchStatistics, NeedTotalsOfAllChannels) {
  EXPECT_THAT(
      [] {
        run_op({totals(), Tensor::zeros(DType::f32, {3}), Tensor::zeros(DType::f32, {3})},
               [](Scope& s, const Outputs& x) {
                 return s.add("SyncBatchStatistics", x, {{"momentum", 0.5}}).output(0);
               });
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("they must be [2C+1]")));
}

TEST(SyncBatchNorm, HasTheGradientsOfItsFormula) {
  const Tensor x = test_numbers({4, 2, 3});
  expect_gradients({x, test_numbers({2}, 1), test_numbers({2}, 2)}, [](Scope& s, const Outputs& in) {
    const Output zero = zeros(s, DType::f64, {2});
    return sync_batch_norm(s, in[0], in[1], in[2], zero, zero, {.epsilon = 0.01}).y;
  });
}

TEST(SyncBatchNorm, KeepsItsPrecisionFarFromZero) {
  const Tensor x = Tensor::of<float>({4, 1}, {4001, 4002, 4003, 4004});
  const Tensor variance = run_op({x}, [](Scope& s, const Outputs& in) {
    const Output zero = zeros(s, DType::f32, {1});
    return sync_batch_norm(s, in[0], zero, zero, zero, zero).variance;
  });
  EXPECT_NEAR(variance.value<float>(), 1.25, 1e-5);
}

}  // namespace
}  // namespace kolo
