// Hooks that give a training loop its inputs, let it wait, and take its last values.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <kolo/core/ops/variables.h>
#include <kolo/core/training/hook.h>

namespace kolo {

/// Feeds what a function returns, which is called before each run.
class FeedFnHook : public SessionRunHook {
 public:
  explicit FeedFnHook(std::function<Feeds()> feed_fn);

  SessionRunArgs before_run(RunContext& context) override;

 private:
  std::function<Feeds()> feed_fn_;
};

/// The first run waits until others, such as the chief of a cluster, have brought the global step so far:
/// looks twice a second, logs `Waiting for global step <n> before starting training.` For 0 and less it never
/// waits.
class GlobalStepWaiterHook : public SessionRunHook {
 public:
  explicit GlobalStepWaiterHook(std::int64_t wait_until_step) : wait_until_step_(wait_until_step) {}

  /// Throws FailedPreconditionError `Global step should be created to use GlobalStepWaiterHook.`
  void begin(Graph& graph) override;
  /// Throws CancelledError when the process is asked to stop.
  SessionRunArgs before_run(RunContext& context) override;

 private:
  std::int64_t wait_until_step_;
  Variable global_step_;
  bool has_waited_ = false;
};

/// Runs fetches once more at the end of the training, and keeps their values.
class FinalOpsHook : public SessionRunHook {
 public:
  explicit FinalOpsHook(std::vector<Fetch> final_ops, Feeds feeds = {});

  /// One for each fetch; none before the end.
  const std::vector<Tensor>& final_ops_values() const { return values_; }

  /// Throws what the run throws. The end of the data there is logged: such ops must not read an input.
  void end(Session& session) override;

 private:
  std::vector<Fetch> final_ops_;
  Feeds feeds_;
  std::vector<Tensor> values_;
};

}  // namespace kolo
