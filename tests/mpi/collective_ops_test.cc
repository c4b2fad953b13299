// Collectives in a graph over several ranks: rows 2, 10, 13, 15 and 18 of the collectives' worked examples as
// nodes, and the gradient of each.
#include <kolo/collectives/graph/collective_ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include <kolo/collectives/job/init.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>

namespace kolo {
namespace {

using testing::Each;
using testing::ElementsAreArray;

using Numbers = std::vector<float>;

// The result of `build` on x of this rank, and the gradient of Σ w·y with respect to x.
struct Ran {
  Numbers value, gradient;
};

Numbers numbers_of(const Tensor& tensor) {
  const auto span = tensor.span<float>();
  return {span.begin(), span.end()};
}

template <typename Build>
Ran run(const Numbers& x, const Numbers& w, const Build& build) {
  Graph graph;
  Scope s(graph);
  const auto rows = static_cast<std::int64_t>(x.size()), results = static_cast<std::int64_t>(w.size());
  const Output in = constant(s, Tensor::of<float>({rows}, std::span<const float>(x)));
  const Output y = build(s, in);
  const Output weights = constant(s, Tensor::of<float>({results}, std::span<const float>(w)));
  const Output dx = gradients(s, {y}, {in}, {weights})[0];
  Session session(graph);
  const auto fetched = session.run({y, dx});
  return {numbers_of(fetched[0]), numbers_of(fetched[1])};
}

float r() { return static_cast<float>(rank()); }
float all_ranks_plus_one() { return static_cast<float>(size() * (size() + 1)) / 2; }

TEST(CollectiveNodes, AverageAndSendTheAverageBack) {  // row 2
  const Ran ran = run({r() + 1, 0}, {r() + 1, 1},
                      [](Scope& s, Output x) { return allreduce(s, x, Reduction(ReduceOp::average, 1, 2)); });
  const float average = all_ranks_plus_one() / static_cast<float>(size());
  EXPECT_THAT(ran.value, ElementsAreArray({2 * average, 0.0f}));
  EXPECT_THAT(ran.gradient, ElementsAreArray({2 * average, 2.0f}));
}

TEST(CollectiveNodes, GatherRowsAndGiveEachRankItsOwnBack) {  // row 10
  const int all = size() * (size() + 1) / 2;
  Numbers expected, weights(all);
  for (int rank = 0; rank < size(); ++rank)
    expected.insert(expected.end(), rank + 1, static_cast<float>(rank));
  std::iota(weights.begin(), weights.end(), 1.0f);
  const Ran ran = run(Numbers(rank() + 1, r()), weights, [](Scope& s, Output x) { return allgather(s, x); });
  EXPECT_EQ(ran.value, expected);
  const int first = rank() * (rank() + 1) / 2;
  for (int i = 0; i <= rank(); ++i)
    EXPECT_EQ(ran.gradient[i], static_cast<float>(size()) * weights[first + i]);
}

TEST(CollectiveNodes, ScatterSumsAndGatherGradients) {  // row 13
  Numbers x(7);
  std::iota(x.begin(), x.end(), 0.0f);
  const int own = 7 / size() + (rank() < 7 % size() ? 1 : 0);
  const int first = 7 / size() * rank() + std::min(rank(), 7 % size());
  const Ran ran = run(x, Numbers(own, r()), [](Scope& s, Output in) {
    return reduce_scatter(s, in, Reduction(ReduceOp::average, 1, 3));
  });
  for (int i = 0; i < own; ++i) EXPECT_EQ(ran.value[i], 3.0f * static_cast<float>(first + i));
  int row = 0;
  for (int rank = 0; rank < size(); ++rank)
    for (int i = 0; i < 7 / size() + (rank < 7 % size() ? 1 : 0); ++i, ++row)
      EXPECT_FLOAT_EQ(ran.gradient[row], 3.0f * static_cast<float>(rank) / static_cast<float>(size()));
}

// A gradient that ranks reduce has its memory in their bucket: it must be made there.
TEST(CollectiveNodes, TrainAVariableThatTheyScatter) {
  const int own = 7 / size() + (rank() < 7 % size() ? 1 : 0);
  Graph graph;
  Scope s(graph);
  const Variable v(s.named("v"), zeros(s, DType::f32, {7}));
  const Output rows = reduce_scatter(s, v, Reduction(ReduceOp::average, 1, 3));
  const Output weights = constant(s, Tensor::of<float>({own}, std::span<const float>(Numbers(own, r()))));
  DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0F));
  const Operation step = optimizer.minimize(s, reduce_sum(s, mul(s, rows, weights)));
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  const Numbers trained = numbers_of(session.run(v));
  int row = 0;
  for (int rank = 0; rank < size(); ++rank)
    for (int i = 0; i < 7 / size() + (rank < 7 % size() ? 1 : 0); ++i, ++row)
      EXPECT_FLOAT_EQ(trained[row], -3.0f * static_cast<float>(rank) / static_cast<float>(size()));
}

TEST(CollectiveNodes, BroadcastAndSumOnTheRoot) {  // row 15
  const Ran ran = run({r()}, {r() + 1}, [](Scope& s, Output x) { return broadcast(s, x, 1); });
  EXPECT_THAT(ran.value, Each(1.0f));
  EXPECT_THAT(ran.gradient, Each(rank() == 1 ? all_ranks_plus_one() : 0.0f));
}

TEST(CollectiveNodes, ExchangeRowsAndSendThemBack) {  // row 18
  const std::int64_t rows = static_cast<std::int64_t>(size()) * (size() + 1) / 2;
  std::vector<std::int64_t> splits(size());
  std::iota(splits.begin(), splits.end(), 1);
  Numbers x(rows), weights;
  for (std::int64_t i = 0; i < rows; ++i) x[i] = 10 * r() + static_cast<float>(i);
  const float before = r() * (r() + 1) / 2;
  Numbers expected;
  for (int from = 0; from < size(); ++from)
    for (int i = 0; i <= rank(); ++i)
      expected.push_back(10 * static_cast<float>(from) + before + static_cast<float>(i));
  weights.assign(expected.size(), r() + 1);
  const Ran ran = run(x, weights, [&](Scope& s, Output in) {
    const Output wish = constant(s, Tensor::of<std::int64_t>({static_cast<std::int64_t>(size())},
                                                             std::span<const std::int64_t>(splits)));
    return alltoall(s, in, wish).rows;
  });
  EXPECT_EQ(ran.value, expected);
  std::int64_t row = 0;
  for (int to = 0; to < size(); ++to)
    for (int i = 0; i <= to; ++i) EXPECT_EQ(ran.gradient[row++], static_cast<float>(to + 1));
}

TEST(CollectiveNodes, GatherToARootAndScatterBack) {
  const auto all = rank() == 1 ? static_cast<std::size_t>(size() * (size() + 1) / 2) : 0;
  Numbers weights(all);
  std::iota(weights.begin(), weights.end(), 0.0f);
  const Ran ran =
      run(Numbers(rank() + 1, r()), weights, [](Scope& s, Output x) { return gather_to(s, x, 1); });
  EXPECT_EQ(ran.value.size(), all);
  const int first = rank() * (rank() + 1) / 2;
  for (int i = 0; i <= rank(); ++i) EXPECT_EQ(ran.gradient[i], static_cast<float>(first + i));
}

TEST(CollectiveNodes, ScatterFromARootAndGatherThere) {
  Numbers x(2 * size());
  std::iota(x.begin(), x.end(), 100 * r());
  const Ran ran = run(x, {r(), r() + 0.5f}, [](Scope& s, Output in) { return scatter_from(s, in, 1); });
  EXPECT_THAT(ran.value, ElementsAreArray({100 + 2 * r(), 101 + 2 * r()}));
  for (int i = 0; i < 2 * size(); ++i)
    EXPECT_EQ(ran.gradient[i], rank() == 1 ? static_cast<float>(i) / 2 : 0.0f);
}

TEST(CollectiveNodes, OfOneStepFindEachOtherWhateverTheirOrder) {
  Graph graph;
  Scope s(graph);
  Outputs sums;
  for (int k = 0; k < 20; ++k) {
    const int own = rank() % 2 == 0 ? k : 19 - k;  // nodes are made, and run, in another order
    sums.push_back(allreduce(s.named("sum_" + std::to_string(own)), constant(s, static_cast<float>(own)),
                             Reduction(ReduceOp::max)));
  }
  Session session(graph);
  const auto fetched = session.run(sums);
  for (int k = 0; k < 20; ++k)
    EXPECT_EQ(fetched[k].span<float>()[0], static_cast<float>(rank() % 2 == 0 ? k : 19 - k));
}

}  // namespace
}  // namespace kolo
