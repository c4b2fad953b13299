// A loss that is no number, on one rank or on all: what each of them is told, and what is left on the disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/hooks.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class NanLoss : public testing::Test {
 protected:
  NanLoss() { set_log_level(LogLevel::off); }
  ~NanLoss() override { set_log_level(LogLevel::info); }

  // Two good steps and, on ranks that `is_bad`, the logarithm of a negative number. What was thrown.
  std::string train(bool is_bad) {
    Graph graph;
    Scope s(graph);
    const Output x = placeholder(s.named("x"), DType::f32, {});
    const Variable w(s.named("w"), constant(s, 100.0f));
    const Output loss = log(s.named("logarithm"), mul(s, w, x));
    DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0f));
    const Operation train_op = optimizer.minimize(s, loss);
    try {
      MonitoredTrainingSession sess(graph, {.checkpoint_dir = rank() == 0 ? folder_.path() : "",
                                            .save_checkpoint_steps = 1,
                                            .hooks = {std::make_shared<NanTensorHook>(loss)}});
      for (int i = 0; i < 10; ++i) sess.run(train_op, {{x, Tensor::scalar(is_bad && i == 2 ? -1.0f : 1.0f)}});
      sess.close();
    } catch (const Error& error) {
      return fmt::format("{}: {}", name(error.code()), error.what());
    }
    return "nothing";
  }
  void expect_two_good_steps() const {
    if (rank() != 0) return;
    EXPECT_THAT(list_checkpoints(folder_.path()),
                ElementsAre("model.ckpt-2", "model.ckpt-1", "model.ckpt-0"));
    const Tensor w = SafetensorsReader(folder_ / "model.ckpt-2.safetensors").read("w");
    EXPECT_TRUE(std::isfinite(w.value<float>()));
  }

  TemporaryDirectory folder_;
};

TEST_F(NanLoss, OfTheLastRankEndsAllAndLeavesTheLastGoodStep) {
  const bool is_last = rank() == size() - 1;
  const std::string error = train(is_last);
  if (is_last) {
    EXPECT_THAT(error, AllOf(StartsWith("FailedPrecondition: NaN loss during training."),
                             HasSubstr("in step 3"), HasSubstr("node \"logarithm\"")));
  } else {
    EXPECT_THAT(error, AllOf(StartsWith("Aborted: "), HasSubstr(fmt::format("rank {}", size() - 1)),
                             HasSubstr("NaN loss during training.")));
  }
  world_group().allgather("");
  expect_two_good_steps();
}

TEST_F(NanLoss, OfAllRanksEndsAllAndLeavesTheLastGoodStep) {
  EXPECT_THAT(train(true), HasSubstr("NaN loss during training."));
  world_group().allgather("");
  expect_two_good_steps();
}

}  // namespace
}  // namespace kolo
