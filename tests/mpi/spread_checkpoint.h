// Trainings on several ranks that save checkpoints, which rank 0 alone may write.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/registry.h>
#include <tests/core/training/temporary_directory.h>
#include <tests/mpi/callback_hook.h>
#include <tests/support/tensor_bytes.h>

namespace kolo {

inline constexpr std::int64_t kSteps = 10;

// The gradient of w [6,5], another one for each rank and step.
inline Tensor gradient_of(std::int64_t step) {
  Tensor x = Tensor::zeros(DType::f32, {6, 5});
  for (int i = 0; i < 30; ++i)
    x.data<float>()[i] =
        static_cast<float>(std::sin(0.7 * i * static_cast<double>(step + 1)) * std::cos(1.3 * rank() + i));
  return x;
}

using State = std::map<std::string, std::string>;  // the bytes of each variable, by its name

struct Training {
  explicit Training(DistributedOptimizerOptions options, const std::string& rule = "momentum") {
    DistributedOptimizer optimizer(make_optimizer(rule, {.learning_rate = 0.1, .momentum = 0.9}),
                                   std::move(options));
    train = optimizer.minimize(s, mul(s, w, gradient));
  }
  // All that a checkpoint is to hold of this rank, bit for bit.
  State state(Session& session) {
    State all;
    for (const Variable& variable : global_variables(graph))
      all[variable.name()] = bytes_of(session.run(variable.read()));
    return all;
  }

  Graph graph;
  Scope s{graph};
  Variable w{s.named("w"), zeros(s, DType::f32, {6, 5})};
  Output gradient = placeholder(s, DType::f32, {6, 5});
  Operation train;
};

class SpreadCheckpoint : public testing::Test {
 protected:
  SpreadCheckpoint() { set_log_level(LogLevel::error); }
  ~SpreadCheckpoint() override { clear_stop_signal(); }

  bool is_last() const { return rank() == size() - 1; }
  MonitoredTrainingSessionOptions options(std::optional<std::int64_t> save_steps = 1000) {
    return {.checkpoint_dir = rank() == 0 ? folder_.path() : "/proc/none",
            .save_checkpoint_steps = save_steps};
  }
  // Runs until the global step is `last_step`, the session stops or `body` throws; the state at the end.
  State train(Training& training, const MonitoredTrainingSessionOptions& options, std::int64_t last_step,
              const std::function<void(MonitoredTrainingSession&)>& after_step = {}) {
    MonitoredTrainingSession session(training.graph, options);
    while (session.global_step() < last_step && !session.should_stop()) {
      session.run({training.train}, {{training.gradient, gradient_of(session.global_step())}});
      if (after_step) after_step(session);
    }
    State state = training.state(session.session());
    session.close();
    return state;
  }
  State uninterrupted(const DistributedOptimizerOptions& options) {
    Training training(options);
    return train(training, {}, kSteps);
  }
  // A second program, from the checkpoint that is there.
  State continued(const DistributedOptimizerOptions& options_of_optimizer, std::int64_t from) {
    Training training(options_of_optimizer);
    MonitoredTrainingSessionOptions all = options();
    all.hooks = {std::make_shared<CallbackHook>([&](RunContext& context, int run) {
      const Variable step = find_global_step(training.graph);
      EXPECT_EQ(read_global_step(context.session(), step), from + run);
    })};
    return train(training, all, kSteps);
  }
  std::string newest_checkpoint() const {
    const auto names = list_checkpoints(folder_.path());
    return names.empty() ? "" : names.front();
  }

  TemporaryDirectory folder_;
};

}  // namespace kolo
