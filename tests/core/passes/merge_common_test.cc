#include <gmock/gmock.h>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/passes/placed_step.h"

namespace kolo {
namespace {

using ::testing::ElementsAre;

struct MergeCommon : ::testing::Test {
  static StepGraph merged(const std::vector<Fetch>& fetches) { return after("merge_common", fetches); }
  static int count(const StepGraph& step, const std::string& op) {
    const auto ops = ops_of(step);
    return static_cast<int>(std::count(ops.begin(), ops.end(), op));
  }
  Graph graph;
  Scope s{graph};
  const Output x = placeholder(s.named("x"), DType::f32, {2, 3});
};

TEST_F(MergeCommon, KeepsTheFirstOfEqualNodesAndOfWhatIsEqualThereby) {
  const Output a = exp(s.named("a"), neg(s, x)), b = exp(s.named("b"), neg(s, x));
  const StepGraph step = merged({mul(s.named("y"), a, b)});
  EXPECT_THAT(ops_of(step), ElementsAre("Placeholder", "Neg", "Exp", "Mul"));
  EXPECT_EQ(input_of(step, "y", 0), "a");
  EXPECT_EQ(input_of(step, "y", 1), "a");
}

TEST_F(MergeCommon, GivesBothFetchesTheOneValue) {
  const StepGraph step = merged({neg(s, x), neg(s, x)});
  EXPECT_EQ(step.fetches[0], step.fetches[1]);
}

TEST_F(MergeCommon, TellsAttributesInputsAndTheirOrderApart) {
  EXPECT_EQ(count(merged({reduce_sum(s, x, {.axes = {0}}), reduce_sum(s, x, {.axes = {1}})}), "ReduceSum"),
            2);
  const Output y = neg(s, x);
  EXPECT_EQ(count(merged({sub(s, x, y), sub(s, y, x)}), "Sub"), 2);
}

TEST_F(MergeCommon, MergesEqualConstantsButNotZeroWithMinusZero) {
  EXPECT_EQ(count(merged({constant(s, 1.0f), constant(s, 1.0f), constant(s, 2.0f)}), "Const"), 2);
  EXPECT_EQ(count(merged({constant(s, 0.0f), constant(s, -0.0f)}), "Const"), 2);
  EXPECT_EQ(count(merged({fill(s, DType::f32, {2}, 0.0), fill(s, DType::f32, {2}, -0.0)}), "Fill"), 2);
}

TEST_F(MergeCommon, NeverMergesRandomNumbers) {
  EXPECT_EQ(count(merged({random_uniform(s, DType::f32, {2}, 0, 1, 7),
                          random_uniform(s, DType::f32, {2}, 0, 1, 7)}),
                  "RandomUniform"),
            2);
}

TEST_F(MergeCommon, TellsControlInputsApart) {
  const Operation first = no_op(s.named("first"));
  const Scope later = s.control_dependencies({first});
  EXPECT_EQ(count(merged({neg(s, x), neg(later, x)}), "Neg"), 2);
  EXPECT_EQ(count(merged({neg(later, x), neg(later, x)}), "Neg"), 1);
}

TEST_F(MergeCommon, KeepsReadsBeforeAndAfterAnUpdateApart) {
  const Variable v(s, zeros(s, DType::f32, {}));
  const Output before = neg(s, v.ref()), again = neg(s, v.ref());
  const Output update = assign_add(s, v, constant(s, 1.0f));
  const Output behind = neg(s, v.ref());
  EXPECT_EQ(count(merged({before, again, Operation(update.node), behind}), "Neg"), 2);
  EXPECT_EQ(count(merged({before, again, behind}), "Neg"), 1);
  Session session(graph);
  session.run(v.initializer());
  const auto values = session.run({before, again, Operation(update.node), behind});
  EXPECT_EQ(values[1].value<float>(), 0);
  EXPECT_EQ(values[3].value<float>(), -1);
}

TEST_F(MergeCommon, TellsDevicesApart) {
  StepGraph step = placed_step({neg(s, x), neg(s, x)});
  step.nodes.back().device = local_device_name("CPU", 1);
  rewrite(step, only("merge_common"));
  EXPECT_EQ(count(step, "Neg"), 2);
}

}  // namespace
}  // namespace kolo
