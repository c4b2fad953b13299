#include <kolo/collectives/engine/fusion.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulated_negotiation.h"

namespace kolo::detail {
namespace {

using testing::ElementsAre;

// The numbers of the requests in each run.
std::vector<std::vector<int>> runs_of(const std::vector<RequestPtr>& requests, std::int64_t fusion_bytes) {
  std::vector<AgreedReduction> reductions;
  for (const auto& request : requests) reductions.push_back({request.get(), 2});
  std::vector<std::vector<int>> numbers;
  for (const auto& run : fuse(reductions, fusion_bytes)) {
    auto& one = numbers.emplace_back();
    for (const auto& piece : run) one.push_back(piece.operation);
  }
  return numbers;
}

TEST(Fusion, FillsABufferUpToItsBytes) {
  const auto a = allreduce_request("a", {2}), b = allreduce_request("b", {2}),
             c = allreduce_request("c", {1});
  EXPECT_THAT(runs_of({a, b, c}, 16), ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
  EXPECT_THAT(runs_of({a, b, c}, 20), ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(Fusion, LeavesEachTensorAloneWithoutBytes) {
  const auto a = allreduce_request("a"), b = allreduce_request("b");
  EXPECT_THAT(runs_of({a, b}, 0), ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST(Fusion, LeavesALargerTensorAlone) {
  const auto a = allreduce_request("a", {1}), b = allreduce_request("b", {100}),
             c = allreduce_request("c", {1});
  EXPECT_THAT(runs_of({a, b, c}, 64), ElementsAre(ElementsAre(0, 2), ElementsAre(1)));
}

TEST(Fusion, KeepsTypesAndReductionsApart) {
  const auto f32 = allreduce_request("a"), f64 = allreduce_request("b", {4}, DType::f64);
  Request max = *f32, scaled = *f32;
  max.reduction = ReduceOp::max;
  scaled.reduction.postscale = 2;
  EXPECT_THAT(runs_of({f32, f64, std::make_shared<const Request>(max),
                       std::make_shared<const Request>(scaled), f32, f64},
                      1000),
              ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2), ElementsAre(3)));
}

TEST(Fusion, KeepsNumbersOfContributorsApart) {
  const auto a = allreduce_request("a");
  EXPECT_EQ(fuse({{a.get(), 2}, {a.get(), 1}}, 1000).size(), 2U);
}

// A node's average is over those of its ranks that contribute, which may be others for each tensor.
TEST(Fusion, LeavesAdasumOfSomeRanksAlone) {
  Request adasum = *allreduce_request("a");
  adasum.reduction = ReduceOp::adasum;
  EXPECT_EQ(fuse({{&adasum, 3, true}, {&adasum, 3, true}}, 1000).size(), 1U);
  EXPECT_EQ(fuse({{&adasum, 2, false}, {&adasum, 2, false}}, 1000).size(), 2U);
}

TEST(Fusion, ReducesNothingForEmptyTensors) {
  EXPECT_TRUE(runs_of({allreduce_request("a", {0}), allreduce_request("b", {3, 0})}, 1000).empty());
}

TEST(Fusion, KeepsAGroupsMembersOfOneTypeTogether) {
  Request group = *allreduce_request("g");
  group.kind = OpKind::grouped_allreduce;
  group.tensors = {{DType::f32, {2}}, {DType::f64, {2}}, {DType::f32, {2}}};
  EXPECT_THAT(runs_of({std::make_shared<const Request>(group)}, 1000),
              ElementsAre(ElementsAre(0, 0), ElementsAre(0)));
}

TEST(Fusion, FusesAdasumWithItsKind) {
  Request adasum = *allreduce_request("a");
  adasum.reduction = ReduceOp::adasum;
  const auto one = std::make_shared<const Request>(adasum), sum = allreduce_request("b");
  EXPECT_THAT(runs_of({one, sum, one}, 1000), ElementsAre(ElementsAre(0, 2), ElementsAre(1)));
}

}  // namespace
}  // namespace kolo::detail
