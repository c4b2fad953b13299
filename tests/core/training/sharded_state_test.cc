#include <kolo/core/training/rank_state.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/graph_def.h>
#include <kolo/core/ops/basic.h>

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;

struct Model {
  Variable add(const std::string& name, Shape shape) {
    return Variable(s.named(name), zeros(s, DType::f32, std::move(shape)), {.trainable = false});
  }

  Graph graph;
  Scope s{graph};
  Variable slot = add("w/shard/Adam", {5});
};

TEST(ShardedState, TellsWhatAVariableIsAPartOf) {
  Model model;
  const RankState part{.kind = RankState::Kind::part, .whole = {"w/Adam", {4, 3}}, .range = {7, 5}};
  set_rank_state(model.graph, model.slot, part);
  EXPECT_EQ(rank_state(model.slot), part);
  EXPECT_FALSE(rank_state(model.slot).optional);
}

TEST(ShardedState, ListsPartsInTheOrderInWhichTheyWereMarked) {
  Model model;
  const Variable empty = model.add("v/shard/Adam", {0});
  set_rank_state(model.graph, model.slot, {.kind = RankState::Kind::part, .whole = {"w/Adam", {5}}});
  set_rank_state(model.graph, empty,
                 {.kind = RankState::Kind::part, .whole = {"v/Adam", {2}}, .range = {.first = 2}});
  const auto parts = rank_parts(model.graph);
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_EQ(parts[0].first, model.slot);
  EXPECT_EQ(parts[1].first, empty);
  EXPECT_EQ(parts[1].second.range, (ElementRange{2, 0}));
}

TEST(ShardedState, SurvivesTheExportOfAGraph) {
  Model model;
  const Variable scratch = model.add("w/shard", {5});
  set_rank_state(model.graph, model.slot,
                 {.kind = RankState::Kind::part, .whole = {"w/Adam", {4, 3}}, .range = {.first = 7}});
  set_rank_state(model.graph, scratch, {.kind = RankState::Kind::scratch});
  Graph again;
  const Scope s(again);
  import_graph_def(s, to_graph_def(model.graph));
  const Variable slot = Variable::of(*again.find_node("w/shard/Adam"));
  EXPECT_EQ(rank_state(slot).whole, (RankState::Whole{"w/Adam", {4, 3}}));
  EXPECT_EQ(rank_state(slot).range, (ElementRange{7, 5}));
  EXPECT_EQ(rank_state(Variable::of(*again.find_node("w/shard"))).kind, RankState::Kind::scratch);
}

TEST(ShardedState, OfAVariableThatIsNotMarkedIsNone) {
  Model model;
  EXPECT_EQ(rank_state(model.slot), RankState());
}

TEST(ShardedState, RefusesAPartThatReachesBeyondTheWhole) {
  Model model;
  EXPECT_THAT(
      [&] {
        set_rank_state(model.graph, model.slot,
                       {.kind = RankState::Kind::part, .whole = {"w/Adam", {4, 3}}, .range = {.first = 8}});
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("w/shard/Adam"), HasSubstr("[4,3]"))));
  EXPECT_EQ(rank_state(model.slot), RankState());
}

TEST(ShardedState, RefusesTheNameOfAVariable) {
  Model model;
  model.add("w/Adam", {5});
  EXPECT_THAT(
      [&] {
        set_rank_state(model.graph, model.slot, {.kind = RankState::Kind::part, .whole = {"w/Adam", {5}}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("the graph has a variable \"w/Adam\"")));
}

TEST(ShardedState, RefusesASecondMark) {
  Model model;
  set_rank_state(model.graph, model.slot, {.kind = RankState::Kind::part, .whole = {"w/Adam", {5}}});
  EXPECT_THAT(
      [&] {
        set_rank_state(model.graph, model.slot, {.kind = RankState::Kind::part, .whole = {"other", {5}}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("shard of \"w/Adam\" already")));
}

}  // namespace
}  // namespace kolo
