// The nodes on one rank, and what they refuse; tests/mpi/collective_ops_test.cc has several ranks.
#include <kolo/collectives/graph/collective_ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class CollectiveOps : public testing::Test {
 protected:
  CollectiveOps() { init(nullptr, nullptr); }
  ~CollectiveOps() override { shutdown(); }
  const Tensor x_ = test_numbers({4, 3});

  // Value, shape and gradient of an op that one rank's x passes unchanged.
  template <typename Build>
  void expect_identity(const Build& build, const Shape& result = {-1, 3}) {
    const Tensor y = run_op({x_}, build);
    ASSERT_EQ(y.shape(), x_.shape());
    for (std::int64_t i = 0; i < x_.elements(); ++i) EXPECT_EQ(y.data<double>()[i], x_.data<double>()[i]);
    expect_shape({{4, 3}}, build, result);
    expect_gradients({x_}, [&](Scope& s, const Outputs& x) { return build(s, {square(s, x[0])}); });
  }
};

TEST_F(CollectiveOps, GiveOneRankItsOwn) {
  expect_identity(
      [](Scope& s, const Outputs& x) { return allreduce(s, x[0], Reduction(ReduceOp::sum, 0.5, 2)); },
      {4, 3});
  expect_identity([](Scope& s, const Outputs& x) { return allgather(s, x[0]); });
  expect_identity([](Scope& s, const Outputs& x) { return reduce_scatter(s, x[0]); });
  expect_identity([](Scope& s, const Outputs& x) { return broadcast(s, x[0], 0); }, {4, 3});
  expect_identity([](Scope& s, const Outputs& x) { return alltoall(s, x[0]).rows; });
  expect_identity([](Scope& s, const Outputs& x) { return gather_to(s, x[0], 0); });
  expect_identity([](Scope& s, const Outputs& x) { return scatter_from(s, x[0], 0); });
}

TEST_F(CollectiveOps, GiveGradientsTheShapeOfWhatWentIn) {
  const AttrMap summed = {{"reduction", "sum"}}, rooted = {{"root", 0}};
  for (const auto& [op, attrs] :
       {std::pair("ReduceScatterGrad", summed), {"ScatterFromGrad", rooted}, {"SumOfBlocks", AttrMap()}})
    expect_shape({{2, 3}, {6, 3}},
                 [&, op = op, attrs = attrs](Scope& s, const Outputs& x) -> Output {
                   return s.add(op, {x[0], x[1]}, attrs);
                 },
                 {6, 3});
  expect_shape(
      {{6, 3}},
      [&](Scope& s, const Outputs& dy) -> Output { return s.add("BroadcastFromGrad", {dy[0]}, rooted); },
      {6, 3});
}

TEST_F(CollectiveOps, TellHowManyRowsCameFromEachRank) {
  const auto splits = [](Scope& s, const Outputs& x) { return alltoall(s, x[0]).splits; };
  EXPECT_THAT(run_op({x_}, splits).span<std::int64_t>(), ElementsAre(4));
}

TEST_F(CollectiveOps, RefuseGradientsOfWhatIsNotLinear) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {2});
  const Output y = allreduce(s, x, Reduction(ReduceOp::max));
  EXPECT_THAT([&] { gradients(s, {y}, {x}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("has no gradient")));
}

TEST_F(CollectiveOps, RefuseARootThatIsNotThere) {
  const auto from_1 = [](Scope& s, const Outputs& x) { return broadcast(s, x[0], 1); };
  EXPECT_THAT(
      [&] { run_op({x_}, from_1); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("root rank 1 is outside the process set of 1 ranks")));
}

TEST_F(CollectiveOps, RefuseScalarsWhereRowsAreMeant) {
  Graph graph;
  Scope s(graph);
  const Output scalar = placeholder(s, DType::f32, Shape());
  EXPECT_THAT([&] { allgather(s, scalar); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("needs at least one dimension")));
}

}  // namespace
}  // namespace kolo
