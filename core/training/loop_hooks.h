// Hooks that give a training loop its inputs, and take its last values.
#pragma once

#include <functional>
#include <vector>

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
