// Under which names, and with which shapes, checkpoints hold the variables of a saver.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <kolo/core/ops/variables.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/rank_state.h>

namespace kolo::detail {

class SavedNames {
 public:
  /// Throws InvalidArgumentError `The same saveable will be restored with two names: <n>`, for an empty name,
  /// and for another name than its own of a variable that is a part of something, or each rank's own: what
  /// the ranks put together has its name already.
  void set(const Variable& variable, const std::string& name);

  /// In a checkpoint of one rank. state: rank_state(variable), also below.
  std::string of(const Variable& variable, const RankState& state) const;
  /// From which tensor of a checkpoint this rank takes the variable; nothing if it has none.
  std::optional<std::string> find(const CheckpointIndex& index, const Variable& variable,
                                  const RankState& state) const;

 private:
  std::map<const Node*, std::string> names_;  // those that were given
};

/// Of the tensor that holds the variable: its own, or that of the whole that it is a part of.
Shape saved_shape(const Variable& variable, const RankState& state);

}  // namespace kolo::detail
