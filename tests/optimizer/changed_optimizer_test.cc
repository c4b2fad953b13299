// A checkpoint folder that another optimizer goes on with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/registry.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

class ChangedOptimizer : public testing::Test {
 protected:
  ChangedOptimizer() { set_log_level(LogLevel::warning); }

  // Trains by this rule to that step, from what the folder holds; what was logged.
  std::string train(const std::string& rule, std::int64_t last_step, const std::string& variable = "w") {
    testing::internal::CaptureStderr();
    Graph graph;
    Scope s(graph);
    const Variable w(s.named(variable), constant(s, 1.0f));
    DistributedOptimizer optimizer(make_optimizer(rule, {.learning_rate = 0.1, .momentum = 0.9}));
    const Operation train = optimizer.minimize(s, square(s, w));
    {
      MonitoredTrainingSession sess(graph, {.checkpoint_dir = folder_.path(), .save_checkpoint_steps = 1});
      while (sess.global_step() < last_step) sess.run(train);
    }
    return testing::internal::GetCapturedStderr();
  }
  std::vector<std::string> tensors(const std::string& checkpoint) const {
    const CheckpointReader reader(folder_ / checkpoint);
    std::vector<std::string> names;
    for (const auto& [name, entry] : reader.index().tensors) names.push_back(name);
    return names;
  }
  static auto lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

  TemporaryDirectory folder_;
};

TEST_F(ChangedOptimizer, SaysInOneLineWhatIsDropped) {
  EXPECT_EQ(train("adam", 2), "");
  const std::string log = train("sgd", 4);
  EXPECT_THAT(log, AllOf(HasSubstr("model.ckpt-2 is of another training step: 4 tensors (\"beta1_power\", "
                                   "\"beta2_power\", \"w/Adam\", …) of it will not be used"),
                         Not(HasSubstr("anew"))));
  EXPECT_EQ(lines(log), 1) << log;
  EXPECT_THAT(tensors("model.ckpt-4"), Not(Contains("w/Adam")));
}

TEST_F(ChangedOptimizer, SaysInOneLineWhatBeginsAnew) {
  train("sgd", 2);
  const std::string log = train("momentum", 4);
  EXPECT_THAT(log, HasSubstr("1 variable (\"w/Momentum\") not in it: it begins anew"));
  EXPECT_EQ(lines(log), 1) << log;
  EXPECT_THAT(tensors("model.ckpt-4"), Contains("w/Momentum"));
}

TEST_F(ChangedOptimizer, SaysBothInOneLine) {
  train("momentum", 2);
  const std::string log = train("adam", 4);
  EXPECT_THAT(log, AllOf(HasSubstr("1 tensor (\"w/Momentum\") of it will not be used"),
                         HasSubstr("they begin anew")));
  EXPECT_EQ(lines(log), 1) << log;
}

TEST_F(ChangedOptimizer, SaysNothingWhereItIsTheSame) {
  train("adam", 2);
  EXPECT_EQ(train("adam", 4), "");
}

TEST_F(ChangedOptimizer, IsRefusedWithAnotherModel) {
  train("sgd", 2);
  EXPECT_THAT([&] { train("sgd", 4, "v"); },
              ThrowsMessage<NotFoundError>(HasSubstr("Key v not found in checkpoint")));
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace kolo
