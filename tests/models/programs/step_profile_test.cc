#include <kolo/models/programs/step_profile.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace kolo::models {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

// 1 GFLOP/s is 1e6 a millisecond.
constexpr CorePeak kPeak{.gflops = 1, .GBps = 1};

struct Ran {
  std::string name, op;
  int ms;
};

StepTrace one_after_another(const std::vector<Ran>& nodes) {
  StepTrace trace;
  std::chrono::steady_clock::time_point now;
  for (const Ran& node : nodes) {
    const auto end = now + std::chrono::milliseconds(node.ms);
    trace.events.push_back(
        {.name = node.name, .category = node.op, .lane = "CPU:0", .start = now, .end = end});
    now = end;
  }
  return trace;
}

Profile profile_of(const std::vector<Ran>& nodes, const std::map<std::string, NodeWork>& work = {}) {
  StepProfiler profiler;
  profiler.add(one_after_another(nodes));
  return profiler.profile(work, kPeak);
}

auto row(const char* name, double ms) {
  return testing::AllOf(Field(&ProfileRow::name, name), Field(&ProfileRow::ms, testing::DoubleEq(ms)));
}

TEST(StepProfile, AddsUpNodesOfOneOpTheLongestFirst) {
  const Profile profile =
      profile_of({{"a/Relu", "Relu", 2}, {"a/MatMul", "MatMul", 4}, {"b/MatMul", "MatMul", 5}});
  EXPECT_THAT(profile.ops, ElementsAre(row("MatMul", 9), row("Relu", 2)));
  EXPECT_DOUBLE_EQ(profile.step_ms, 11);
}

TEST(StepProfile, CountsGradientsToTheLayerWhoseTheyAre) {
  const Profile profile = profile_of({{"fc1/MatMul", "MatMul", 1},
                                      {"gradients/fc1/MatMul_grad/MatMul_1", "MatMul", 2},
                                      {"Adam/update_fc1/w/ApplyAdam", "ApplyAdam", 9},
                                      {"ReduceMean", "ReduceMean", 1}});
  EXPECT_THAT(profile.layers, ElementsAre(row("(update)", 9), row("fc1", 3), row("(others)", 1)));
}

TEST(StepProfile, TakesTheMedianOfTheSteps) {
  StepProfiler profiler;
  for (const int ms : {3, 50, 4}) profiler.add(one_after_another({{"a", "Relu", ms}}));
  const Profile profile = profiler.profile({}, kPeak);
  EXPECT_EQ(profile.steps, 3);
  EXPECT_DOUBLE_EQ(profile.step_ms, 4);
  EXPECT_THAT(profile.ops, ElementsAre(row("Relu", 4)));
}

TEST(StepProfile, HoldsANodeAgainstTheSlowerOfArithmeticAndMemory) {
  const Profile profile = profile_of({{"computes", "A", 4}, {"moves", "B", 4}},
                                     {{"computes", {.flops = 2e6, .bytes = 1e6}}, {"moves", {.bytes = 3e6}}});
  EXPECT_THAT(profile.ops, ElementsAre(Field(&ProfileRow::bound_ms, testing::DoubleEq(2)),
                                       Field(&ProfileRow::bound_ms, testing::DoubleEq(3))));
}

TEST(StepProfile, NeverExpectsMoreThanWasMeasured) {
  const Profile profile = profile_of({{"in cache", "A", 4}}, {{"in cache", {.bytes = 9e6}}});
  EXPECT_THAT(profile.ops, ElementsAre(Field(&ProfileRow::bound_ms, testing::DoubleEq(4))));
}

TEST(StepProfile, NamesTheThreeNodesThatLoseMost) {
  std::map<std::string, NodeWork> work;
  for (const char* name : {"a", "b", "c", "d"}) work[name] = {.bytes = 1e6};
  const Profile profile =
      profile_of({{"a", "A", 2}, {"b", "B", 9}, {"unknown", "C", 99}, {"c", "D", 5}, {"d", "E", 4}}, work);
  EXPECT_THAT(profile.furthest, ElementsAre(row("b", 9), row("c", 5), row("d", 4)));
}

TEST(StepProfile, KnowsTheWorkOfWhatWasFusedByItsFirstOp) {
  const Profile profile =
      profile_of({{"fc1/BiasAdd + Relu", "FusedElementwise", 2}}, {{"fc1/BiasAdd", {.bytes = 1e6}}});
  EXPECT_THAT(profile.furthest, ElementsAre(Field(&ProfileRow::bound_ms, testing::DoubleEq(1))));
}

TEST(StepProfile, PrintsRatesAndShares) {
  const std::string text = to_text(profile_of({{"fc1/MatMul", "MatMul", 4}, {"x", "Other", 4}},
                                              {{"fc1/MatMul", {.flops = 2e6, .bytes = 8}}}));
  EXPECT_THAT(text, HasSubstr("50.0 %"));
  EXPECT_THAT(text, HasSubstr("0.5 GFLOP/s"));
  EXPECT_THAT(text, HasSubstr("50 % of its bound  MatMul"));
}

TEST(StepProfile, HoldsNothingOnAGpuAgainstTheProcessor) {
  StepTrace trace = one_after_another({{"fc1/MatMul", "MatMul", 4}, {"x", "Other", 4}});
  trace.events[0].only_put_there = true;
  StepProfiler profiler;
  profiler.add(trace);
  const Profile profile = profiler.profile({{"fc1/MatMul", {.flops = 2e6, .bytes = 8}}}, kPeak);
  EXPECT_THAT(profile.furthest, testing::IsEmpty());
  EXPECT_THAT(to_text(profile), HasSubstr("the times are the host's"));
  EXPECT_THAT(to_text(profile), testing::Not(HasSubstr("of its bound  MatMul")));
}

TEST(StepProfile, SaysThatNoStepWasMade) {
  EXPECT_THAT(to_text(StepProfiler().profile({}, kPeak)), HasSubstr("no step"));
}

}  // namespace
}  // namespace kolo::models
