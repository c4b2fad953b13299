// Ranks whose weights have come to differ: named on all ranks, whatever did it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

int last() { return size() - 1; }

// loss = sum((x · first) · second), where x differs among the ranks.
struct Model {
  explicit Model(DistributedOptimizerOptions options = {}) {
    Output loss = reduce_sum(s, matmul(s, matmul(s, x, first), second));
    loss = add(s, loss, mul(s, own, constant(s, static_cast<float>(rank()))));
    set_rank_state(graph, own, {.kind = RankState::Kind::own});
    train =
        DistributedOptimizer(std::make_unique<AdamOptimizer>(0.01f), std::move(options)).minimize(s, loss);
    for (const Variable& variable : {first, second, average, own})
      change.push_back(assign_add(s, variable, fill(s, DType::f32, variable.shape(), 1e-6f)));
  }
  Variable variable(const char* name, const Shape& shape, bool trainable = true) {
    return {s.named(name), fill(s, DType::f32, shape, 0.5f), {.trainable = trainable}};
  }
  Feeds feeds() const {
    std::vector<float> values(16, static_cast<float>(rank() + 1));
    return {{x, Tensor::of<float>({2, 8}, std::span<const float>(values))}};
  }

  Graph graph;
  Scope s{graph};
  Output x = placeholder(s, DType::f32, {2, 8});
  Variable first = variable("first", {8, 8}), second = variable("second", {8, 4});
  Variable average = variable("average", {3}, false), own = variable("own", {});
  Operation train;
  Outputs change;  // by variable, in this order
};

// What ends a training of 12 steps, in which variable `changed` of rank `on` is changed behind step 5.
std::string error_of(Model& model, std::optional<int> changed, int on, std::int64_t every = 2) {
  try {
    MonitoredTrainingSession session(
        model.graph, {.hooks = {std::make_shared<StopAtStepHook>(12)}, .check_drift_steps = every});
    while (!session.should_stop()) {
      session.run(model.train, model.feeds());
      if (session.global_step() == 5 && changed && rank() == on)
        session.session().run(model.change[static_cast<std::size_t>(*changed)]);
    }
    session.close();
  } catch (const FailedPreconditionError& error) {
    return error.what();
  }
  return "";
}

TEST(DriftCheck, NamesVariableAndRankOnAllRanks) {
  for (const int variable : {0, 1}) {
    Model model;
    const std::string error = error_of(model, variable, last());
    EXPECT_THAT(error, StartsWith(fmt::format("weights differ: \"{}\" on rank {} since a step in 5..6",
                                              variable == 0 ? "first" : "second", last())));
  }
}

TEST(DriftCheck, FindsNothingWhereNothingDiffers) {
  Model model;
  EXPECT_EQ(error_of(model, {}, 0, 1), "");
}

TEST(DriftCheck, LeavesOutWhatIsNotTrainedAlike) {
  for (const int variable : {2, 3}) {
    Model model;
    EXPECT_EQ(error_of(model, variable, last()), "");
  }
}

TEST(DriftCheck, NeverComparesWhereStepsAreNone) {
  Model model;
  EXPECT_EQ(error_of(model, 0, last(), 0), "");
}

struct Way {
  const char* name;
  std::function<DistributedOptimizerOptions()> options;
};
class DriftCheckOf : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(
    Ways, DriftCheckOf,
    testing::Values(
        Way{"sharded", [] { return DistributedOptimizerOptions{.sharded = true}; }},
        Way{"sum", [] { return DistributedOptimizerOptions{.op = ReduceOp::sum}; }},
        Way{"adasum", [] { return DistributedOptimizerOptions{.op = ReduceOp::adasum}; }},
        Way{"fp16", [] { return DistributedOptimizerOptions{.compression = fp16_compression()}; }},
        Way{"powersgd", [] { return DistributedOptimizerOptions{.compression = powersgd_compression(1)}; }},
        Way{"two_passes", [] { return DistributedOptimizerOptions{.backward_passes_per_step = 2}; }}),
    [](const auto& way) { return way.param.name; });

// Behind each step: a sharded one gives all ranks the parts of all.
TEST_P(DriftCheckOf, OptionsOfTheOptimizerFindsWhatDiffersAndNothingElse) {
  Model same(GetParam().options()), model(GetParam().options());
  EXPECT_EQ(error_of(same, {}, 0, 1), "");
  EXPECT_THAT(error_of(model, 0, 0, 1),
              AllOf(StartsWith("weights differ: \"first\" on rank "), HasSubstr("in 5..5")));
}

TEST(DriftCheck, ComparesThoseOfAProcessSetAmongItsRanks) {
  if (size() < 3) GTEST_SKIP() << "nobody is outside";
  const ProcessSet ends = ProcessSet::create(std::vector{0, last()});
  Model same({.process_set = ends}), model({.process_set = ends});
  EXPECT_EQ(error_of(same, {}, 0), "");
  const std::string error = error_of(model, 1, last());
  if (rank() == 1) EXPECT_EQ(error, "");
  else EXPECT_THAT(error, StartsWith(fmt::format("weights differ: \"second\" on rank {} ", last())));
}

}  // namespace
}  // namespace kolo
