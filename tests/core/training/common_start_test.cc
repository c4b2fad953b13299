#include <kolo/core/training/common_start.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/training/rank_state.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/thread_group.h"

namespace kolo::detail {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What each rank says when rank r has a graph with the variables of `shapes`[r], named after their places.
std::vector<std::string> compare(const std::vector<std::map<std::string, Shape>>& variables) {
  return run_ranks(static_cast<int>(variables.size()), [&](Group& group) {
    Graph graph;
    Scope s(graph);
    for (const auto& [name, shape] : variables[group.rank()])
      Variable(s.named(name), zeros(s, DType::f32, shape));
    compare_variables(group, graph, {});
  });
}

TEST(CompareVariables, PassesEqualVariables) {
  EXPECT_THAT(compare({{{"a", {2}}, {"b", {3}}}, {{"a", {2}}, {"b", {3}}}, {{"a", {2}}, {"b", {3}}}}),
              Each(IsEmpty()));
}

TEST(CompareVariables, NamesOnEveryRankTheFirstVariableOfAnotherShape) {
  EXPECT_THAT(compare({{{"a", {2}}, {"b", {3}}, {"c", {1}}},
                       {{"a", {2}}, {"b", {3}}, {"c", {1}}},
                       {{"a", {2}}, {"b", {4}}, {"c", {2}}}}),
              Each("Ranks disagree on the variables: \"b\" is f32 [3] on rank 0 but f32 [4] on rank 2"));
}

TEST(CompareVariables, NamesOnEveryRankTheVariablesThatSomeLack) {
  EXPECT_THAT(compare({{{"a", {2}}}, {{"a", {2}}, {"b", {2}}, {"c", {2}}}}),
              Each("Ranks disagree on the variables: \"b\", \"c\" exist on rank 1 but not on rank 0"));
  EXPECT_THAT(compare({{{"a", {2}}, {"b", {2}}}, {{"a", {2}}}}),
              Each("Ranks disagree on the variables: \"b\" exists on rank 0 but not on rank 1"));
  EXPECT_THAT(compare({{{"a", {2}}}, {}}), Each(HasSubstr("\"a\" exists on rank 0 but not on rank 1")));
}

TEST(CompareVariables, LetsShardsAndScratchDifferInShape) {
  EXPECT_THAT(run_ranks(3,
                        [](Group& group) {
                          Graph graph;
                          const Scope s(graph);
                          const Variable part(s.named("part"), zeros(s, DType::f32, {group.rank()}));
                          set_rank_state(graph, part,
                                         {.kind = RankState::Kind::part,
                                          .whole = {"whole", {9}},
                                          .range = {.first = group.rank()}});
                          const Variable scratch(s.named("scratch"), zeros(s, DType::f32, {group.rank()}));
                          set_rank_state(graph, scratch, {.kind = RankState::Kind::scratch});
                          compare_variables(group, graph, {});
                        }),
              Each(IsEmpty()));
}

TEST(CompareVariables, NamesOnEveryRankAMarkThatSomeLack) {
  EXPECT_THAT(
      run_ranks(2,
                [](Group& group) {
                  Graph graph;
                  const Scope s(graph);
                  const Variable error(s.named("error"), zeros(s, DType::f32, {2}));
                  if (group.rank() == 1) set_rank_state(graph, error, {.kind = RankState::Kind::own});
                  compare_variables(group, graph, {});
                }),
      Each("Ranks disagree on the variables: \"error\" is f32 [2] on rank 0 but f32 [2], each rank's own on "
           "rank 1"));
}

TEST(ComparePrecision, NamesBothOnEveryRank) {
  EXPECT_THAT(
      run_ranks(3,
                [](Group& group) {
                  compare_precision(group, group.rank() == 1 ? Precision::bf16 : Precision::f32);
                }),
      Each("Ranks disagree on the training step: graph_options.precision is f32 on rank 0 but bf16 on "
           "rank 1"));
  EXPECT_THAT(run_ranks(2, [](Group& group) { compare_precision(group, Precision::bf16); }), Each(IsEmpty()));
}

TEST(CompareNumberOfSchedules, NamesBothNumbers) {
  EXPECT_THAT(run_ranks(2,
                        [](Group& group) {
                          compare_number_of_schedules(group, {{{}, group.rank()}});
                        }),
              Each("Ranks disagree on the training step: the graph has 0 distributed optimizers on rank 0 "
                   "but 1 on rank 1"));
}

TEST(CompareNumberOfSchedules, ComparesThoseOfSomeRanksAmongThese) {
  EXPECT_THAT(run_ranks(4,
                        [](Group& group) {
                          const bool even = group.rank() % 2 == 0;
                          EXPECT_TRUE(compare_number_of_schedules(
                              group, {{even ? std::vector{0, 2} : std::vector{1, 3}, even ? 1 : 2}}));
                        }),
              Each(IsEmpty()));
}

TEST(CompareNumberOfSchedules, NamesTheRankThatLacksAScheduleOfItsSet) {
  EXPECT_THAT(run_ranks(3,
                        [](Group& group) {
                          std::map<std::vector<int>, int> schedules;
                          if (group.rank() == 2) schedules[{1, 2}] = 1;
                          compare_number_of_schedules(group, schedules);
                        }),
              Each("Ranks disagree on the training step: the graph has 0 distributed optimizers over the "
                   "ranks [1,2] on rank 1 but 1 on rank 2"));
}

TEST(BroadcastState, GivesAllRanksTheChiefsVariablesAndStates) {
  const auto errors = run_ranks(3, [](Group& group) {
    CountingGraph model;
    Session session(model.graph);
    std::string position = "[9]";
    const std::vector<SavedState> states = {{.name = "samples",
                                             .save = [&] { return position; },
                                             .restore = [&](const std::string& saved) { position = saved; }}};
    if (group.rank() == 0) {
      session.run(global_variables_initializer(model.s));
      for (int i = 0; i < 4; ++i) session.run(model.train);
      position = "[1,4]";
    }
    broadcast_state(group, session, states);
    EXPECT_EQ(model.global_step(session), 4);
    EXPECT_THAT(session.run(model.w.read()).span<float>(), ElementsAre(14, 24));
    EXPECT_EQ(position, "[1,4]");
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(BroadcastState, TellsEveryRankOfAStateThatCannotBeTakenOnOne) {
  EXPECT_THAT(run_ranks(3,
                        [](Group& group) {
                          CountingGraph model;
                          Session session(model.graph);
                          const SavedState state{.name = "samples",
                                                 .save = [] { return "[9]"; },
                                                 .restore =
                                                     [&](const std::string&) {
                                                       if (group.rank() == 2)
                                                         throw DataLossError("no epoch 9");
                                                     }};
                          broadcast_state(group, session, {state});
                        }),
              ElementsAre("rank 2: no epoch 9", "rank 2: no epoch 9", "no epoch 9"));
}

TEST(BroadcastState, TellsEveryRankOfAStateThatTheChiefCannotGive) {
  EXPECT_THAT(run_ranks(2,
                        [](Group& group) {
                          CountingGraph model;
                          Session session(model.graph);
                          const SavedState state{
                              .name = "samples",
                              .save = []() -> std::string { throw DataLossError("no position"); },
                              .restore = [](const std::string&) {}};
                          broadcast_state(group, session, {state});
                        }),
              ElementsAre("no position", "rank 0: no position"));
}

TEST(BroadcastState, LetsAllRanksDrawTheChiefsNextRandomNumbers) {
  std::vector<Tensor> third_draws(2);
  const auto errors = run_ranks(2, [&](Group& group) {
    Graph graph;
    Scope s(graph);
    const Output noise = random_uniform(s.named("noise"), DType::f32, {4}, 0, 1, 17);
    Session session(graph);
    if (group.rank() == 0)
      for (int i = 0; i < 2; ++i) session.run(noise);
    broadcast_state(group, session, {});
    third_draws[group.rank()] = session.run(noise);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_THAT(third_draws[1].span<float>(), testing::ElementsAreArray(third_draws[0].span<float>()));
}

}  // namespace
}  // namespace kolo::detail
