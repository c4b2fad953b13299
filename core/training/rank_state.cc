#include <kolo/core/training/rank_state.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/core/runtime/compare_ranks.h>
#include <kolo/core/runtime/session_state.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/rank_state_internal.h>

namespace kolo {
namespace {

bool is_in(const char* collection, const Node& node) {
  const auto& nodes = node.graph().collection(collection);
  return std::find(nodes.begin(), nodes.end(), &node) != nodes.end();
}

void put_in(Graph& graph, const char* collection, const Variable& variable) {
  const Node& node = *variable.ref().node;
  if (!is_in(collection, node)) graph.add_to_collection(collection, node);
}

}  // namespace

void mark_optional(Graph& graph, const Variable& variable) { put_in(graph, kOptionalVariables, variable); }

void mark_own_of_rank(Graph& graph, const Variable& variable) {
  put_in(graph, kOptionalVariables, variable);
  put_in(graph, kRankVariables, variable);
}

bool is_optional(const Variable& variable) { return is_in(kOptionalVariables, *variable.ref().node); }
bool is_own_of_rank(const Variable& variable) { return is_in(kRankVariables, *variable.ref().node); }

namespace {

// Says what the variable is a part of; never run. A node, so that an exported graph tells it, too.
const RegisterOp shard_of_op(OpSchema("ShardOf")
                                 .input("ref")
                                 .required_attr("whole", "")
                                 .required_attr("shape", Shape())
                                 .required_attr("first", 0)
                                 .stateful()
                                 .no_gradient());

constexpr char kSuffix[] = "/shard_of";

ShardOf described_by(const Node& node) {
  return {.name = node.attr<std::string>("whole"),
          .shape = node.attr<Shape>("shape"),
          .first = node.attr<std::int64_t>("first")};
}

void check(const Graph& graph, const Variable& variable, const ShardOf& whole) {
  if (shard_of(variable))
    throw InvalidArgumentError("\"{}\" is marked as a shard of \"{}\" already", variable.name(),
                               shard_of(variable)->name);
  if (!whole.shape.is_fully_known())
    throw InvalidArgumentError("shard \"{}\": the shape of \"{}\" is {}; it must be fully known",
                               variable.name(), whole.name, whole.shape);
  const std::int64_t elements = variable.shape().elements(), all = whole.shape.elements();
  if (whole.first < 0 || whole.first > all || elements > all - whole.first)
    throw InvalidArgumentError(
        "shard \"{}\": {} elements from element {} on do not lie in \"{}\" of shape {}, which has {}",
        variable.name(), elements, whole.first, whole.name, whole.shape, all);
  if (whole.name.empty())
    throw InvalidArgumentError("shard \"{}\": the name of the whole tensor is empty", variable.name());
  for (const Variable& other : global_variables(graph))
    if (other.name() == whole.name)
      throw InvalidArgumentError("shard \"{}\": the graph has a variable \"{}\", which cannot be its whole",
                                 variable.name(), whole.name);
}

}  // namespace

void mark_shard(Graph& graph, const Variable& variable, const ShardOf& whole) {
  check(graph, variable, whole);
  const Node& node = *Scope(graph)
                          .without_control_dependencies()
                          .add("ShardOf", {variable.ref()},
                               {{"whole", whole.name}, {"shape", whole.shape}, {"first", whole.first}},
                               variable.name() + kSuffix)
                          .node;
  graph.add_to_collection(kShards, node);
  put_in(graph, kRankVariables, variable);
}

std::optional<ShardOf> shard_of(const Variable& variable) {
  const Node& storage = *variable.ref().node;
  for (const Node* node : storage.graph().collection(kShards))
    if (node->input(0).node == &storage) return described_by(*node);
  return {};
}

std::vector<std::pair<Variable, ShardOf>> shards(const Graph& graph) {
  std::vector<std::pair<Variable, ShardOf>> all;
  for (const Node* node : graph.collection(kShards))
    all.emplace_back(Variable::of(*node->input(0).node), described_by(*node));
  return all;
}

void mark_scratch(Graph& graph, const Variable& variable) {
  put_in(graph, kScratchVariables, variable);
  put_in(graph, kRankVariables, variable);
}

bool is_scratch(const Variable& variable) { return is_in(kScratchVariables, *variable.ref().node); }

}  // namespace kolo

namespace kolo::detail {
namespace {

using nlohmann::json;

// What must be the same on all ranks: `part of "w/Adam" f32 [4,3]`.
std::string kind_of(const Variable& variable, const std::optional<ShardOf>& whole) {
  if (!whole) return fmt::format("{} {}", variable.dtype(), variable.shape());
  return fmt::format("part of \"{}\" {} {}", whole->name, variable.dtype(), whole->shape);
}

// This rank's variables, for the others.
json described(const std::vector<Variable>& variables, Session& session) {
  json all = json::object();
  for (const Variable& variable : variables) {
    const auto whole = shard_of(variable);
    all[variable.name()] = {{"kind", kind_of(variable, whole)},
                            {"first", whole ? whole->first : 0},
                            {"elements", variable.shape().elements()},
                            {"initialized", bool{detail::storage_of(session, variable).initialized}}};
  }
  return all;
}

void check_same_variables(const json& first, const json& other, int rank) {
  for (const bool swapped : {false, true})
    for (const auto& [name, description] : (swapped ? other : first).items())
      if (!(swapped ? first : other).contains(name))
        throw FailedPreconditionError(
            "Ranks disagree on the variables: \"{}\" exists on rank {} but not on rank {}", name,
            swapped ? rank : 0, swapped ? 0 : rank);
  for (const auto& [name, description] : first.items())
    if (description["kind"] != other[name]["kind"])
      throw FailedPreconditionError(
          "Ranks disagree on the variables: \"{}\" is {} on rank 0 but {} on rank {}", name,
          description["kind"].get<std::string>(), other[name]["kind"].get<std::string>(), rank);
}

// Every element once.
void check_makes_whole(const SpreadTensor& tensor) {
  std::vector<SpreadTensor::Part> parts = tensor.parts;
  std::erase_if(parts, [](const SpreadTensor::Part& part) { return part.elements == 0; });
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  parts.push_back({.first = tensor.whole->shape.elements()});
  std::int64_t next = 0;
  for (const SpreadTensor::Part& part : parts) {
    if (part.first != next)
      throw FailedPreconditionError(
          "the ranks' shards \"{}\" do not make up \"{}\" of shape {}: element {} is on {}",
          tensor.variable.name(), tensor.whole->name, tensor.whole->shape, std::min(next, part.first),
          part.first > next ? "no rank" : "two ranks");
    next += part.elements;
  }
}

SpreadTensor joined(const Variable& variable, const std::vector<json>& ranks) {
  SpreadTensor tensor{.variable = variable, .whole = shard_of(variable), .parts = {}};
  for (const json& rank : ranks) {
    const json& own = rank[variable.name()];
    tensor.parts.push_back(
        {.first = own["first"].get<std::int64_t>(), .elements = own["elements"].get<std::int64_t>()});
  }
  if (tensor.whole) check_makes_whole(tensor);
  return tensor;
}

// What rank 0 reads for one tensor of the layout: a part for each rank.
std::vector<Tensor> read_parts(CheckpointReader& reader, const SpreadTensor& tensor) {
  const DType dtype = tensor.variable.dtype();
  std::vector<Tensor> parts;
  if (tensor.whole) {
    const Tensor whole(dtype, tensor.whole->shape);
    reader.read(tensor.whole->name, whole);
    for (const SpreadTensor::Part& part : tensor.parts)
      parts.push_back(part_of(whole, part.first, part.elements));
    return parts;
  }
  for (std::size_t rank = 0; rank < tensor.parts.size(); ++rank) {
    parts.emplace_back(dtype, tensor.variable.shape());
    reader.read(name_of_rank(tensor.variable.name(), static_cast<int>(rank)), parts.back());
  }
  return parts;
}

bool holds_all_parts(const CheckpointIndex& index, const SpreadTensor& tensor) {
  if (tensor.whole) return index.tensors.count(tensor.whole->name) > 0;
  return ranks_in_checkpoint(index, tensor.variable.name()) == static_cast<int>(tensor.parts.size());
}

}  // namespace

std::vector<Variable> spread_variables(const Graph& graph) {
  std::vector<Variable> variables;
  for (const Variable& variable : global_variables(graph))
    if (is_own_of_rank(variable) && !is_scratch(variable)) variables.push_back(variable);
  std::sort(variables.begin(), variables.end(),
            [](const Variable& a, const Variable& b) { return a.name() < b.name(); });
  return variables;
}

std::vector<SpreadTensor> compare_spread_state(Group& group, Session& session, const SpreadCheck& check) {
  const std::vector<Variable> variables = spread_variables(session.graph());
  const json mine = {{"variables", described(variables, session)}};
  std::vector<json> ranks;
  for (const std::string& text : group.allgather(mine.dump())) {
    const json theirs = json::parse(text);
    if (theirs.contains("refused"))
      throw AbortedError("rank {}: {}", ranks.size(), theirs["refused"].get<std::string>());
    ranks.push_back(theirs["variables"]);
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    check_same_variables(ranks[0], ranks[rank], static_cast<int>(rank));
    for (const auto& [name, description] : ranks[rank].items())
      if (check.must_be_initialized && !description["initialized"].get<bool>())
        throw FailedPreconditionError("Attempting to use uninitialized value {} (of rank {})", name, rank);
  }
  std::vector<SpreadTensor> layout;
  for (const Variable& variable : variables) layout.push_back(joined(variable, ranks));
  return layout;
}

void refuse_spread_state(Group& group, const std::string& text) {
  group.allgather(json{{"refused", text}}.dump(-1, ' ', false, json::error_handler_t::replace));
}

Tensor part_of(const Tensor& whole, std::int64_t first, std::int64_t elements) {
  return whole.reshaped(Shape{whole.elements()}).rows(first, first + elements);
}

std::string name_of_rank(const std::string& variable, int rank) {
  return fmt::format("{}/rank_{}", variable, rank);
}

int ranks_in_checkpoint(const CheckpointIndex& index, const std::string& variable) {
  int ranks = 0;
  while (index.tensors.count(name_of_rank(variable, ranks)) > 0) ++ranks;
  return ranks;
}

std::optional<std::string> name_in_checkpoint(const CheckpointIndex& index, const Variable& variable,
                                              int rank, int ranks) {
  const auto if_there = [&](const std::string& name) {
    return index.tensors.count(name) > 0 ? std::optional(name) : std::nullopt;
  };
  if (is_scratch(variable)) return {};
  if (const auto whole = shard_of(variable)) return if_there(whole->name);
  if (!is_own_of_rank(variable)) return if_there(variable.name());
  if (ranks > 1 && ranks_in_checkpoint(index, variable.name()) == ranks)
    return name_of_rank(variable.name(), rank);
  return rank == 0 ? if_there(variable.name()) : std::nullopt;
}

void scatter_checkpoint(Group& group, Session& session, const std::optional<std::string>& path) {
  if (!is_spread_over_ranks(session, group)) return;
  const bool is_root = group.rank() == kSpreadRoot;
  const std::vector<SpreadTensor> layout = compare_spread_state(group, session, {});
  std::optional<CheckpointReader> reader;
  json is_read = json::array();  // by tensor
  share_failure(group, [&] {
    if (is_root && path) reader.emplace(*path);
    for (const SpreadTensor& tensor : layout)
      is_read.push_back(reader && holds_all_parts(reader->index(), tensor));
  });
  is_read = json::parse(group.broadcast(is_read.dump(), kSpreadRoot));
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (!is_read[i].get<bool>()) continue;
    std::vector<Tensor> parts;
    share_failure(group, [&] {
      if (is_root) parts = read_parts(*reader, layout[i]);
    });
    VariableStorage& storage = detail::storage_of(session, layout[i].variable);
    group.scatter(parts, storage.value, kSpreadRoot);
    storage.initialized = true;
  }
}

}  // namespace kolo::detail

namespace kolo {
namespace {

bool has_step_of_all_ranks(Session& session) {
  const StepVotes votes = detail::state_of(session).votes();
  return std::any_of(votes.begin(), votes.end(), [](const auto& vote) { return vote->ranks().empty(); });
}

// The whole tensor of a shard, or one tensor for each rank, by their names in a checkpoint; parts[r] is where
// rank r's own goes.
std::map<std::string, Tensor> make_tensors(const detail::SpreadTensor& tensor, std::vector<Tensor>& parts) {
  if (tensor.whole) {
    const Tensor whole(tensor.variable.dtype(), tensor.whole->shape);
    for (const detail::SpreadTensor::Part& part : tensor.parts)
      parts.push_back(detail::part_of(whole, part.first, part.elements));
    return {{tensor.whole->name, whole}};
  }
  std::map<std::string, Tensor> all;
  for (std::size_t rank = 0; rank < tensor.parts.size(); ++rank) {
    parts.emplace_back(tensor.variable.dtype(), tensor.variable.shape());
    all[detail::name_of_rank(tensor.variable.name(), static_cast<int>(rank))] = parts.back();
  }
  return all;
}

}  // namespace

bool is_spread_over_ranks(Session& session, const Group& group) {
  if (group.size() == 1) return false;
  if (!shards(session.graph()).empty()) return true;
  return !detail::spread_variables(session.graph()).empty() && has_step_of_all_ranks(session);
}

GatheredState::GatheredState(Session& session, Group& group) {
  if (!is_spread_over_ranks(session, group)) return;
  const std::vector<detail::SpreadTensor> layout =
      detail::compare_spread_state(group, session, {.must_be_initialized = true});
  const bool is_root = group.rank() == detail::kSpreadRoot;
  std::vector<std::vector<Tensor>> parts(layout.size());
  detail::share_failure(group, [&] {
    for (std::size_t i = 0; is_root && i < layout.size(); ++i)
      tensors_.merge(make_tensors(layout[i], parts[i]));
  });
  for (std::size_t i = 0; i < layout.size(); ++i)
    group.gather(detail::storage_of(session, layout[i].variable).value, parts[i], detail::kSpreadRoot);
}

void GatheredState::refuse(const std::string& text, Group& group) {
  if (group.size() > 1) detail::refuse_spread_state(group, text);
}

}  // namespace kolo
