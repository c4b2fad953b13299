// How much of a step this rank waits for the others' gradients.
#pragma once

#include <functional>
#include <optional>

#include <kolo/core/training/hook.h>

namespace kolo::models {

/// Traces the steps for which `due` says so before them: give it to all ranks.
class CommunicationShareHook : public SessionRunHook {
 public:
  explicit CommunicationShareHook(std::function<bool()> due) : due_(std::move(due)) {}

  SessionRunArgs before_run(RunContext& context) override;
  void after_run(RunContext& context, const RunValues& values) override;

  /// Of the last step, 0 … 1: the part of it in which gradients were under way and nothing was computed.
  /// Nothing where it was not traced.
  std::optional<double> share() const { return share_; }

 private:
  std::function<bool()> due_;
  bool asked_ = false;
  std::optional<double> share_;
};

}  // namespace kolo::models
