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
  const ShardOf whole{.name = "w/Adam", .shape = {4, 3}, .first = 7};
  mark_shard(model.graph, model.slot, whole);
  EXPECT_EQ(shard_of(model.slot), whole);
  EXPECT_TRUE(is_own_of_rank(model.slot));
  EXPECT_FALSE(is_optional(model.slot));
}

TEST(ShardedState, ListsPartsInTheOrderInWhichTheyWereMarked) {
  Model model;
  const Variable empty = model.add("v/shard/Adam", {0});
  mark_shard(model.graph, model.slot, {.name = "w/Adam", .shape = {5}});
  mark_shard(model.graph, empty, {.name = "v/Adam", .shape = {2}, .first = 2});
  const auto parts = shards(model.graph);
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_EQ(parts[0].first, model.slot);
  EXPECT_EQ(parts[1].first, empty);
  EXPECT_EQ(parts[1].second.first, 2);
}

TEST(ShardedState, SurvivesTheExportOfAGraph) {
  Model model;
  const Variable scratch = model.add("w/shard", {5});
  mark_shard(model.graph, model.slot, {.name = "w/Adam", .shape = {4, 3}, .first = 7});
  mark_scratch(model.graph, scratch);
  Graph again;
  const Scope s(again);
  import_graph_def(s, to_graph_def(model.graph));
  const Variable slot = Variable::of(*again.find_node("w/shard/Adam"));
  EXPECT_EQ(shard_of(slot), (ShardOf{.name = "w/Adam", .shape = {4, 3}, .first = 7}));
  EXPECT_TRUE(is_scratch(Variable::of(*again.find_node("w/shard"))));
}

TEST(ShardedState, OfAVariableThatIsNotMarkedIsNone) {
  Model model;
  EXPECT_EQ(shard_of(model.slot), std::nullopt);
  EXPECT_FALSE(is_scratch(model.slot));
}

TEST(ShardedState, RefusesAPartThatReachesBeyondTheWhole) {
  Model model;
  EXPECT_THAT(
      [&] {
        mark_shard(model.graph, model.slot, {.name = "w/Adam", .shape = {4, 3}, .first = 8});
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("w/shard/Adam"), HasSubstr("[4,3]"))));
  EXPECT_EQ(shard_of(model.slot), std::nullopt);
}

TEST(ShardedState, RefusesTheNameOfAVariable) {
  Model model;
  model.add("w/Adam", {5});
  EXPECT_THAT([&] { mark_shard(model.graph, model.slot, {.name = "w/Adam", .shape = {5}}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("the graph has a variable \"w/Adam\"")));
}

TEST(ShardedState, RefusesASecondMark) {
  Model model;
  mark_shard(model.graph, model.slot, {.name = "w/Adam", .shape = {5}});
  EXPECT_THAT([&] { mark_shard(model.graph, model.slot, {.name = "other", .shape = {5}}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("shard of \"w/Adam\" already")));
}

}  // namespace
}  // namespace kolo
