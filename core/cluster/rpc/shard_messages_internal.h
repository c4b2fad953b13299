// Messages about files of checkpoints and about positions of random ops.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <kolo/core/cluster/rpc/messages_internal.h>
#include <kolo/core/cluster/worker/worker.h>
#include <kolo/core/runtime/shards.h>

namespace kolo::detail {

/// keys: of a task's variables; none: to a master, by their names.
def::WriteShardRequestDef to_def(const std::string& session, const ShardPlace& place,
                                 const std::vector<VariableKey>& keys,
                                 const std::vector<SavedVariable>& variables);
def::ReadShardRequestDef to_def(const std::string& session, const std::vector<VariableKey>& keys,
                                const std::vector<SavedVariable>& variables);
using SavedVariableDefs = google::protobuf::RepeatedPtrField<def::SavedVariableDef>;
ShardPlace place_from(const def::WriteShardRequestDef& def);
std::vector<SavedVariable> variables_from(const SavedVariableDefs& defs);
std::vector<VariableKey> keys_from(const SavedVariableDefs& defs);

def::WriteShardResponseDef to_def(const WrittenShard& shard);
/// variables: how many it is of; of a master's answer how many there are in all.
WrittenShard from_def(const def::WriteShardResponseDef& def, std::size_t variables, bool of_master);

def::RandomPositionsDef to_def(const std::string& session,
                               const std::map<std::string, std::uint64_t>& positions);
std::map<std::string, std::uint64_t> positions_from(const def::RandomPositionsDef& def);

}  // namespace kolo::detail
