// Rows 40 and 41 of the worked examples, and the other ways in which ranks can disagree.
#include <kolo/optimizer/hooks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/training/rank_state.h>

#include "tests/optimizer/small_training.h"

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(BroadcastHook, MakesVariablesEqualToTheRootsBitForBit) {
  Graph graph;
  Scope s(graph);
  const int root = size() - 1;
  const Variable w(s.named("w"), fill(s, DType::f32, {3}, 0.1 * (rank() + 1)));
  const Variable step = get_or_create_global_step(s);
  const Output add_rank = assign_add(s, step, fill(s, DType::i64, {}, rank()));
  const Operation initializer = global_variables_initializer(s);
  Session session(graph);
  session.run(initializer);
  session.run(Operation(add_rank));
  BroadcastGlobalVariablesHook(root).after_create_session(session);
  const float expected = static_cast<float>(0.1 * (root + 1));
  EXPECT_THAT(elements<float>(session.run(w.read())), ElementsAre(expected, expected, expected));
  EXPECT_EQ(session.run(step.read()).value<std::int64_t>(), root);
}

TEST(BroadcastHook, InitialisesWhatOnlyTheRootHasInitialised) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), constant(s, 7.0f));
  const Operation initializer = global_variables_initializer(s);
  Session session(graph);
  if (rank() == 0) session.run(initializer);
  broadcast_variables(session, global_variables(graph), 0);
  EXPECT_EQ(session.run(w.read()).value<float>(), 7);
}

TEST(BroadcastOptimizerState, LeavesTheModelAlone) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), fill(s, DType::f32, {}, rank()));
  const Variable slot(s.named("w/Momentum"), fill(s, DType::f32, {}, rank() + 10), {.trainable = false});
  const Operation initializer = global_variables_initializer(s);
  Session session(graph);
  session.run(initializer);
  broadcast_optimizer_state(session, 1);
  EXPECT_EQ(session.run(w.read()).value<float>(), rank());
  EXPECT_EQ(session.run(slot.read()).value<float>(), 11);
}

TEST(BroadcastHook, PassesOverWhatIsEachRanksOwn) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), fill(s, DType::f32, {}, rank()));
  const Variable own(s.named("own"), fill(s, DType::f32, {}, rank()), {.trainable = false});
  set_rank_state(graph, own, {.kind = RankState::Kind::own});
  const Operation initializer = w.initializer();
  Session session(graph);
  session.run(initializer);
  BroadcastGlobalVariablesHook(1).after_create_session(session);
  EXPECT_EQ(session.run(w.read()).value<float>(), 1);
  EXPECT_EQ(session.run(own.read()).value<float>(), rank());
}

// Runs the hook on a graph with a variable of this shape and, where asked, a second one.
void broadcast_graph(const Shape& shape, DType dtype, bool with_b, int root) {
  Graph graph;
  Scope s(graph);
  const Variable a(s.named("a"), zeros(s, dtype, shape));
  if (with_b) Variable(s.named("b"), constant(s, 1.0f));
  const Operation initializer = global_variables_initializer(s);
  Session session(graph);
  session.run(initializer);
  BroadcastGlobalVariablesHook(root).after_create_session(session);
}

class Disagreement : public ::testing::Test {
 protected:
  void SetUp() override {
    if (size() < 2) GTEST_SKIP() << "one rank agrees with itself";
  }
  const bool odd_one = rank() == 1;
};

TEST_F(Disagreement, NamesTheVariableThatARankLacks) {
  EXPECT_THAT([&] { broadcast_graph({2}, DType::f32, !odd_one, 0); },
              ThrowsMessage<FailedPreconditionError>(AllOf(HasSubstr("\"b\""), HasSubstr("missing on [1]"))));
}

TEST_F(Disagreement, NamesBothShapes) {
  EXPECT_THAT([&] { broadcast_graph({odd_one ? 18 : 17}, DType::f32, false, 0); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Mismatched shapes for a: rank 0 has [17], rank 1 has [18]")));
}

TEST_F(Disagreement, NamesBothTypes) {
  EXPECT_THAT([&] { broadcast_graph({2}, odd_one ? DType::f64 : DType::f32, false, 0); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Mismatched data types for a: rank 0 has float32, rank 1 has float64")));
}

TEST_F(Disagreement, NamesBothRoots) {
  EXPECT_THAT([&] { broadcast_graph({2}, DType::f32, false, odd_one ? 1 : 0); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("rank 0 says 0, rank 1 says 1")));
}

TEST_F(Disagreement, TellsAllRanksOfARootThatIsNone) {
  EXPECT_THAT([&] { broadcast_graph({2}, DType::f32, false, odd_one ? size() : 0); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("is outside the process set of")));
}

}  // namespace
}  // namespace kolo
