#include <gmock/gmock.h>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/gradient_check.h"
#include "tests/core/passes/placed_step.h"
#include "tests/core/same_bits.h"

namespace kolo {
namespace {

using ::testing::Contains;
using ::testing::Not;

constexpr char kScaleRows[] = "ScaleRows";

struct FuseLosses : ::testing::TestWithParam<DType> {
  Output numbers(const Shape& shape) {
    return constant(s, detail::converted<double>(test_numbers(shape, ++salt), GetParam()));
  }
  // Not a constant, and nobody's but the loss's: its memory is free when the loss is made.
  Output logits(const char* name = "logits") {
    const Output x = placeholder(s.named(name), GetParam(), {6, 5});
    feeds.emplace_back(x, detail::converted<double>(test_numbers({6, 5}, ++salt), GetParam()));
    return mul(s, x, x);
  }
  Output losses(Output x) { return sparse_softmax_cross_entropy_with_logits(s, x, labels); }

  std::vector<std::string> ops_after(const std::vector<Fetch>& fetches) {
    return ops_of(after("fuse_losses", fetches));
  }
  void expect_same_bits(const std::vector<Fetch>& fetches) {
    kolo::expect_same_bits(graph, fetches, feeds, {.graph_options = only("fuse_losses")},
                           {.optimizer_level = OptimizerLevel::l0});
  }

  Graph graph;
  Scope s{graph};
  Feeds feeds;
  int salt = 0;
  Output labels = constant(s, Tensor::of<std::int64_t>({6}, {4, 0, 2, 2, 1, 3}));
};

TEST_P(FuseLosses, ScaleTheirGradientThemselves) {
  const Output x = logits(), loss = reduce_mean(s, losses(x));
  const Output dx = gradients(s, {loss}, {x})[0];
  EXPECT_THAT(ops_after({loss, dx}), Contains(detail::kScaledCrossEntropyOp));
  EXPECT_THAT(ops_after({loss, dx}), Not(Contains(kScaleRows)));
  EXPECT_THAT(ops_after({loss, dx}), Not(Contains("ReduceSumGrad")));
  expect_same_bits({loss, dx});
}

TEST_P(FuseLosses, AreReadByOthersToo) {
  const Output x = logits(), each = losses(x), loss = reduce_sum(s, each);
  const Output dx = gradients(
      s, {loss}, {x}, {constant(s, detail::converted<double>(Tensor::of<double>({}, {0.3}), GetParam()))})[0];
  expect_same_bits({x, each, reduce_max(s, each), loss, dx});
  EXPECT_THAT(ops_after({x, each, loss, dx}), Not(Contains(kScaleRows)));
}

TEST_P(FuseLosses, StayWhereTheScaleIsComputedInTheStep) {
  const Output x = logits(), loss = mul(s, reduce_mean(s, losses(x)), reduce_sum(s, logits("weight")));
  const Output dx = gradients(s, {loss}, {x})[0];
  EXPECT_THAT(ops_after({loss, dx}), Contains(kScaleRows));
  expect_same_bits({loss, dx});
}

TEST_P(FuseLosses, StayWhereEachExampleHasItsOwnScale) {
  const Output x = logits(), loss = reduce_sum(s, mul(s, losses(x), numbers({6})));
  const Output dx = gradients(s, {loss}, {x})[0];
  EXPECT_THAT(ops_after({loss, dx}), Contains(kScaleRows));
  expect_same_bits({loss, dx});
}

TEST_P(FuseLosses, LeaveAloneThoseWithoutGradient) {
  const Output loss = reduce_mean(s, losses(logits()));
  EXPECT_THAT(ops_after({loss}), Contains("SparseSoftmaxCrossEntropyWithLogits"));
}

TEST_P(FuseLosses, WriteOverTheLogitsThatNobodyReadsAnyMore) {
  const Output x = logits(), loss = reduce_mean(s, losses(x));
  const Output dx = gradients(s, {loss}, {x})[0];
  expect_same_bits({loss, mul(s, dx, dx)});
}

INSTANTIATE_TEST_SUITE_P(Types, FuseLosses, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& tested) { return tested.param == DType::f32 ? "f32" : "f64"; });

}  // namespace
}  // namespace kolo
