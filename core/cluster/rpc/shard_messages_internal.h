// Messages about files of checkpoints and about positions of random ops.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <kolo/core/cluster/rpc/messages_internal.h>
#include <kolo/core/cluster/worker/worker.h>

namespace kolo::detail {

/// keys: of a task's variables; none: to a master, by their names.
kolo::cluster::WriteShardRequestDef to_def(const std::string& session, const ShardPlace& place,
                                           const std::vector<VariableKey>& keys,
                                           const std::vector<SavedVariable>& variables);
kolo::cluster::ReadShardRequestDef to_def(const std::string& session, const std::vector<VariableKey>& keys,
                                          const std::vector<SavedVariable>& variables);
using SavedVariableDefs = google::protobuf::RepeatedPtrField<kolo::cluster::SavedVariableDef>;
ShardPlace place_from(const kolo::cluster::WriteShardRequestDef& def);
std::vector<SavedVariable> variables_from(const SavedVariableDefs& defs);
std::vector<VariableKey> keys_from(const SavedVariableDefs& defs);

kolo::cluster::WriteShardResponseDef to_def(const WrittenShard& shard);
/// variables: how many it is of; of a master's answer how many there are in all.
WrittenShard from_def(const kolo::cluster::WriteShardResponseDef& def, std::size_t variables, bool of_master);

kolo::cluster::RandomPositionsDef to_def(const std::string& session,
                                         const std::map<std::string, std::uint64_t>& positions, bool set);
std::map<std::string, std::uint64_t> positions_from(const kolo::cluster::RandomPositionsDef& def);

}  // namespace kolo::detail
