#include <kolo/core/graph/loop_nodes.h>

#include <algorithm>

#include <gmock/gmock.h>

#include <kolo/core/ops/variables.h>
#include <tests/core/counted_loop.h>

namespace kolo {
namespace {

using ::testing::Contains;
using testing::counted_loop;
using ::testing::IsEmpty;
using ::testing::Not;

struct NodesInLoop : ::testing::Test {
  Output number(const Scope& at, double value) { return fill(at, DType::f64, Shape{}, value); }

  Graph graph;
  Scope s{graph};
  const Variable v{s.named("v"), number(s, 1)};
};

TEST_F(NodesInLoop, AreThoseThatItRunsButNotWhatItTakesFromOutside) {
  const Output outside = number(s.named("outside"), 2);
  Operation update;
  const Output loop = counted_loop(s, 2, [&](const Scope& b) { return update = assign_add(b, v, outside); });
  const auto nodes = nodes_in_loop(*loop.node);
  EXPECT_THAT(nodes, Contains(update.node));
  EXPECT_THAT(nodes, Contains(v.ref().node));
  EXPECT_THAT(nodes, Not(Contains(outside.node)));
  EXPECT_THAT(nodes, Not(Contains(loop.node)));
  EXPECT_TRUE(std::is_sorted(nodes.begin(), nodes.end(), [](auto* a, auto* b) { return a->id() < b->id(); }));
}

TEST_F(NodesInLoop, AreThoseOfLoopsInsideToo) {
  Operation update;
  const Output loop = counted_loop(s, 2, [&](const Scope& outer) -> Operation {
    return counted_loop(outer, 2, [&](const Scope& b) { return update = assign_add(b, v, number(b, 1)); });
  });
  EXPECT_THAT(nodes_in_loop(*loop.node), Contains(update.node));
}

TEST_F(NodesInLoop, AreNoneOfOtherNodes) { EXPECT_THAT(nodes_in_loop(*v.read().node), IsEmpty()); }

}  // namespace
}  // namespace kolo
