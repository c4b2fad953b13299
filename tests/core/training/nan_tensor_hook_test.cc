#include <kolo/core/training/hooks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/monitored_session.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

// loss = log(w · x); a step takes x from w.
struct LogModel {
  Graph graph;
  Scope s{graph};
  Output x = placeholder(s.named("x"), DType::f32, {2});
  Variable w{s.named("w"), constant(s, Tensor::of<float>({2}, {3, 4}))};
  Variable step = get_or_create_global_step(s);
  Output product = mul(s.named("product"), w, x);
  Output logarithm = log(s.named("logarithm"), product);
  Output loss = reduce_sum(s.named("loss"), logarithm);
  Output count = assign_add(s, step, constant(s, Tensor::scalar<std::int64_t>(1)));
  Operation train{assign_sub(s.control_dependencies({Operation(count)}), w, x)};
};

class NanTensorHookTest : public testing::Test {
 protected:
  NanTensorHookTest() { set_log_level(LogLevel::off); }
  ~NanTensorHookTest() override { set_log_level(LogLevel::info); }

  MonitoredTrainingSessionOptions options(NanTensorOptions nan = {}) {
    return {.checkpoint_dir = folder_.path(),
            .save_checkpoint_steps = 1,
            .hooks = {std::make_shared<NanTensorHook>(model_.loss, nan)}};
  }
  Feeds feeds(float a, float b) const { return {{model_.x, Tensor::of<float>({2}, {a, b})}}; }

  TemporaryDirectory folder_;
  LogModel model_;
};

TEST_F(NanTensorHookTest, LetsFiniteLossesPass) {
  MonitoredTrainingSession sess(model_.graph, options());
  for (int i = 0; i < 2; ++i) sess.run(model_.train, feeds(1, 1));
  EXPECT_EQ(sess.global_step(), 2);
  EXPECT_FALSE(sess.should_stop());
}

TEST_F(NanTensorHookTest, NamesTheStepAndTheFirstOpWithANonFiniteOutput) {
  MonitoredTrainingSession sess(model_.graph, options());
  sess.run(model_.train, feeds(1, 1));
  EXPECT_THAT([&] { sess.run(model_.train, feeds(1, -1)); },
              ThrowsMessage<FailedPreconditionError>(AllOf(
                  StartsWith("NaN loss during training."), HasSubstr("in step 2"),
                  HasSubstr("first op with a non-finite output is Log node \"logarithm\": nan in 1 of 2"))));
}

TEST_F(NanTensorHookTest, CountsAnInfiniteLossAsNone) {
  MonitoredTrainingSession sess(model_.graph, options());
  EXPECT_THAT([&] { sess.run(model_.train, feeds(1, 0)); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("node \"logarithm\": inf in 1 of 2")));
}

// Whatever the order of the nodes: neither the weights nor the step are those of a loss that is no number.
TEST_F(NanTensorHookTest, KeepsTheStepFromUpdatingAnything) {
  MonitoredTrainingSession sess(model_.graph, options());
  EXPECT_THROW(sess.run(model_.train, feeds(1, -1)), FailedPreconditionError);
  const Tensor w = sess.session().run(model_.w.read());
  EXPECT_THAT(w.span<float>(), ElementsAre(3, 4));
  EXPECT_EQ(sess.session().run(model_.step.read()).value<std::int64_t>(), 0);
}

TEST_F(NanTensorHookTest, LeavesTheLastGoodCheckpointTheNewest) {
  const auto train = [&] {
    MonitoredTrainingSession sess(model_.graph, options());
    sess.run(model_.train, feeds(1, 1));
    sess.run(model_.train, feeds(1, -1));
  };
  EXPECT_THROW(train(), FailedPreconditionError);
  EXPECT_THAT(list_checkpoints(folder_.path()), ElementsAre("model.ckpt-1", "model.ckpt-0"));
}

TEST_F(NanTensorHookTest, NamesWhatWasFedWhereThatIsTheOrigin) {
  MonitoredTrainingSession sess(model_.graph, options());
  EXPECT_THAT([&] { sess.run(model_.train, feeds(1, std::nanf(""))); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("what was fed for \"x:0\": nan in 1 of 2")));
}

TEST_F(NanTensorHookTest, NamesTheVariableThatAnEarlierStepSpoilt) {
  const float infinity = std::numeric_limits<float>::infinity();
  MonitoredTrainingSession sess(model_.graph, {.hooks = {std::make_shared<NanTensorHook>(model_.loss)}});
  sess.session().run(model_.train, feeds(-infinity, 1));
  EXPECT_THAT([&] { sess.run(model_.train, feeds(1, 1)); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("variable \"w\", which holds inf in 1 of 2")));
}

TEST_F(NanTensorHookTest, AsksForTheStopWithoutAnErrorIfToldTo) {
  MonitoredTrainingSession sess(model_.graph, options({.fail_on_nan_loss = false}));
  sess.run(model_.train, feeds(1, -1));
  EXPECT_TRUE(sess.should_stop());
  EXPECT_EQ(sess.global_step(), 1);
}

TEST_F(NanTensorHookTest, LeavesOtherErrorsAlone) {
  MonitoredTrainingSession sess(model_.graph, options());
  EXPECT_THAT([&] { sess.run(model_.train); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("You must feed a value for placeholder")));
}

TEST_F(NanTensorHookTest, ServesASecondSessionOfTheSameGraph) {
  const auto hook = std::make_shared<NanTensorHook>(model_.loss);
  for (int i = 0; i < 2; ++i) {
    MonitoredTrainingSession sess(model_.graph, {.hooks = {hook}});
    sess.run(model_.train, feeds(1, 1));
    EXPECT_THROW(sess.run(model_.train, feeds(1, -1)), FailedPreconditionError);
  }
}

TEST_F(NanTensorHookTest, WantsALossOfTheGraph) {
  LogModel other;
  EXPECT_THAT(
      [&] {
        MonitoredTrainingSession(model_.graph, {.hooks = {std::make_shared<NanTensorHook>(other.loss)}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("not of the graph that is trained")));
}

}  // namespace
}  // namespace kolo
