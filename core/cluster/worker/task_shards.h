// The files of a checkpoint that a task writes and reads itself.
#pragma once

#include <string>
#include <vector>

#include <kolo/core/cluster/worker/task_variables.h>
#include <kolo/core/runtime/shards.h>

namespace kolo::detail {

// As Worker has them; task: for messages.

void check_same_folder(const ShardPlace& place, const std::string& task);
WrittenShard write_shard(TaskVariables& all, const ShardPlace& place, const std::vector<VariableKey>& keys,
                         const std::vector<SavedVariable>& variables);
/// host: where a variable lies that no step has needed yet.
void read_shard(TaskVariables& all, const std::vector<VariableKey>& keys,
                const std::vector<SavedVariable>& variables, Device& host, const std::string& task);

}  // namespace kolo::detail
