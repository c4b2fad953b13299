// What the caller of a monitored run and all hooks ask for, as one run of the session.
#pragma once

#include <cstddef>
#include <stop_token>
#include <vector>

#include <kolo/core/training/hook.h>

namespace kolo::detail {

class MergedRun {
 public:
  explicit MergedRun(const SessionRunArgs& callers);

  /// The next hook's wishes. Throws FailedPreconditionError `Same tensor is fed by two hooks.` or `Same
  /// tensor is fed by a SessionRunHook and user.`
  void add(const SessionRunArgs& wishes);

  /// options.stop_token: the caller's alone.
  const SessionRunArgs& args() const { return args_; }
  /// Of the caller and of the hooks.
  const std::vector<std::stop_token>& stop_tokens() const { return stop_tokens_; }
  /// Of all `results`, those that hook number `hook` asked for, in the order of add().
  std::vector<Tensor> results_of_hook(std::size_t hook, const std::vector<Tensor>& results) const;
  std::vector<Tensor> results_of_caller(const std::vector<Tensor>& results) const;

 private:
  SessionRunArgs args_;
  std::vector<std::stop_token> stop_tokens_;
  std::size_t callers_feeds_;
  std::vector<std::size_t> ends_;  // where the results of the caller, then of each hook, end
};

}  // namespace kolo::detail
