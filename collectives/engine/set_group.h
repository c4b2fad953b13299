// core's Group over the ranks of one process set.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/engine/process_set.h>
#include <kolo/core/runtime/group.h>

namespace kolo::detail {

/// Ranks are those of the set, 0 … size() − 1. Only the set's ranks make one.
class SetGroup final : public Group {
 public:
  /// Throws InvalidArgumentError for a set that was removed, and on ranks outside it.
  explicit SetGroup(const ProcessSet& set);
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  void broadcast(std::span<const Tensor> tensors, int root) override;
  std::string broadcast(const std::string& text, int root) override;
  std::vector<std::string> allgather(const std::string& text) override;

 private:
  const ProcessSet set_;
  const std::vector<int> ranks_;  // the job's numbers
  const int rank_;
};

}  // namespace kolo::detail
