#include <kolo/core/base/error.h>

#include <kolo/core/cluster/rpc/shard_messages_internal.h>

namespace kolo::detail {
namespace {

void put_variables(SavedVariableDefs& to, const std::vector<VariableKey>& keys,
                   const std::vector<SavedVariable>& from) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    const SavedVariable& saved = from[i];
    def::SavedVariableDef& made = *to.Add();
    made.mutable_key()->set_name(keys.empty() ? saved.name : keys[i].name);
    if (!keys.empty()) made.mutable_key()->set_container(keys[i].container);
    made.set_saved_as(saved.saved_as);
    for (const std::int64_t dim : saved.shape.dims()) made.add_dims(dim);
    if (saved.value) made.set_value(*saved.value);
    made.set_file(saved.file);
    made.set_crc32c(saved.crc32c);
  }
}

}  // namespace

def::WriteShardRequestDef to_def(const std::string& session, const ShardPlace& place,
                                 const std::vector<VariableKey>& keys,
                                 const std::vector<SavedVariable>& variables) {
  def::WriteShardRequestDef to;
  to.set_session(session);
  to.set_prefix(place.prefix);
  to.set_token(place.token);
  to.set_shard(place.shard);
  to.set_shards(place.shards);
  put_variables(*to.mutable_variables(), keys, variables);
  return to;
}

def::ReadShardRequestDef to_def(const std::string& session, const std::vector<VariableKey>& keys,
                                const std::vector<SavedVariable>& variables) {
  def::ReadShardRequestDef to;
  to.set_session(session);
  put_variables(*to.mutable_variables(), keys, variables);
  return to;
}

ShardPlace place_from(const def::WriteShardRequestDef& from) {
  return {.prefix = checked_name(from.prefix(), "path"),
          .token = checked_name(from.token(), "token"),
          .shard = from.shard(),
          .shards = from.shards()};
}

std::vector<SavedVariable> variables_from(const SavedVariableDefs& defs) {
  std::vector<SavedVariable> variables;
  for (const auto& from : defs) {
    SavedVariable saved{.name = checked_name(from.key().name(), "variable's name"),
                        .saved_as = checked_name(from.saved_as(), "tensor's name"),
                        .shape = Shape(std::vector<std::int64_t>(from.dims().begin(), from.dims().end())),
                        .file = checked_name(from.file(), "path"),
                        .crc32c = from.crc32c()};
    if (from.has_value()) saved.value = from.value();
    variables.push_back(std::move(saved));
  }
  return variables;
}

std::vector<VariableKey> keys_from(const SavedVariableDefs& defs) {
  std::vector<VariableKey> keys;
  for (const auto& from : defs)
    keys.push_back({.container = checked_name(from.key().container(), "container's name"),
                    .name = checked_name(from.key().name(), "variable's name")});
  return keys;
}

def::WriteShardResponseDef to_def(const WrittenShard& shard) {
  def::WriteShardResponseDef to;
  for (const std::uint32_t sum : shard.sums) to.add_sums(sum);
  for (const std::size_t variable : shard.variables) to.add_variables(static_cast<std::uint32_t>(variable));
  to.set_file_bytes(shard.file_bytes);
  to.set_header_crc32c(shard.header_crc32c);
  return to;
}

WrittenShard from_def(const def::WriteShardResponseDef& from, std::size_t variables, bool of_master) {
  WrittenShard shard{.sums = {from.sums().begin(), from.sums().end()},
                     .file_bytes = from.file_bytes(),
                     .header_crc32c = from.header_crc32c()};
  for (const std::uint32_t variable : from.variables()) {
    if (variable >= variables)
      throw InvalidArgumentError("a shard came with variable {} of {}", variable, variables);
    shard.variables.push_back(variable);
  }
  if (shard.sums.size() != (of_master ? shard.variables.size() : variables))
    throw InvalidArgumentError("{} sums came of a shard's variables", shard.sums.size());
  return shard;
}

def::RandomPositionsDef to_def(const std::string& session,
                               const std::map<std::string, std::uint64_t>& positions) {
  def::RandomPositionsDef to;
  to.set_session(session);
  for (const auto& [node, position] : positions) {
    auto& made = *to.add_positions();
    made.set_node(node);
    made.set_position(position);
  }
  return to;
}

std::map<std::string, std::uint64_t> positions_from(const def::RandomPositionsDef& from) {
  std::map<std::string, std::uint64_t> positions;
  for (const auto& position : from.positions())
    positions[checked_name(position.node(), "node's name")] = position.position();
  return positions;
}

}  // namespace kolo::detail
