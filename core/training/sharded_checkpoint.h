// Checkpoints that the tasks of a cluster write themselves, each its own variables, into a folder that all
// have.
#pragma once

#include <string>
#include <vector>

#include <kolo/core/ops/partitioned_variables.h>
#include <kolo/core/runtime/remote_session.h>
#include <kolo/core/runtime/shards.h>
#include <kolo/core/training/checkpoint_files.h>

namespace kolo::detail {

/// While a save lasts: in the folder, with the token in it. Named as a checkpoint that is being written, so
/// that who cleans up after a killed run removes it, too.
std::string token_path(const ShardPlace& place);
/// The file that the task of `place.shard` writes; it is renamed when all have.
std::string shard_path(const ShardPlace& place);
std::string shard_temporary_path(const ShardPlace& place);

/// A variable, and of what tensor of the checkpoint it is a slice, or all.
struct ShardedVariable {
  SavedVariable variable;
  DType dtype = DType::f32;
  VariableSlice in_whole;
};

/// As write_checkpoint, of values that the tasks have. Throws what a task cannot write, with the task in the
/// text, and FailedPreconditionError `checkpoint_dir <d> is not the same folder on <task>`; no file of it is
/// left then, and what was there before is intact.
void write_sharded_checkpoint(RemoteSession& session, const std::string& prefix,
                              const std::vector<ShardedVariable>& variables, const CheckpointExtra& extra);

/// Asks the tasks to read what lies in a file of checkpoint `prefix` as they have it. variables: with the
/// tensor of the index that each is of. Returns which have been read: none where a task does not find the
/// files.
std::vector<bool> read_sharded_checkpoint(RemoteSession& session, const CheckpointIndex& index,
                                          const std::string& prefix,
                                          const std::vector<ShardedVariable>& variables);

}  // namespace kolo::detail
