#include <kolo/core/training/rank_state.h>

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/runtime/compare_ranks.h>
#include <kolo/core/runtime/session_state.h>
#include <kolo/core/training/rank_state_internal.h>

namespace kolo {
namespace {

using Kind = RankState::Kind;

// Collections of storages; what a variable is a part of is a node beside it. Files hold these names.
constexpr char kOptionalVariables[] = "optional_variables";
constexpr char kRankVariables[] = "rank_variables";  // all that are not shared
constexpr char kScratchVariables[] = "scratch_variables";
constexpr char kShards[] = "shards";  // of the nodes "<variable>/shard_of"
constexpr char kSuffix[] = "/shard_of";

// The rank that reads and writes checkpoints.
constexpr int kRoot = 0;

// Says what the variable is a part of; never run. A node, so that an exported graph tells it, too.
const RegisterOp shard_of_op(OpSchema("ShardOf")
                                 .input("ref")
                                 .required_attr("whole", "")
                                 .required_attr("shape", Shape())
                                 .required_attr("first", 0)
                                 .stateful()
                                 .no_gradient());

bool is_in(const char* collection, const Node& node) {
  const auto& nodes = node.graph().collection(collection);
  return std::find(nodes.begin(), nodes.end(), &node) != nodes.end();
}

void put_in(Graph& graph, const char* collection, const Variable& variable) {
  const Node& node = *variable.ref().node;
  if (!is_in(collection, node)) graph.add_to_collection(collection, node);
}

void read_note(const Node& note, RankState& state) {
  state.kind = Kind::part;
  state.whole = {.name = note.attr<std::string>("whole"), .shape = note.attr<Shape>("shape")};
  state.range = {.first = note.attr<std::int64_t>("first"),
                 .count = Variable::of(*note.input(0).node).shape().elements()};
}

void check_part(const Graph& graph, const Variable& variable, const RankState& state) {
  const auto& [name, shape] = state.whole;
  if (const RankState known = rank_state(variable); known.kind == Kind::part)
    throw InvalidArgumentError("\"{}\" is marked as a shard of \"{}\" already", variable.name(),
                               known.whole.name);
  if (!shape.is_fully_known())
    throw InvalidArgumentError("shard \"{}\": the shape of \"{}\" is {}; it must be fully known",
                               variable.name(), name, shape);
  const std::int64_t first = state.range.first, elements = variable.shape().elements(),
                     all = shape.elements();
  if (first < 0 || first > all || elements > all - first)
    throw InvalidArgumentError(
        "shard \"{}\": {} elements from element {} on do not lie in \"{}\" of shape {}, which has {}",
        variable.name(), elements, first, name, shape, all);
  if (name.empty())
    throw InvalidArgumentError("shard \"{}\": the name of the whole tensor is empty", variable.name());
  for (const Variable& other : global_variables(graph))
    if (other.name() == name)
      throw InvalidArgumentError("shard \"{}\": the graph has a variable \"{}\", which cannot be its whole",
                                 variable.name(), name);
}

void note_part(Graph& graph, const Variable& variable, const RankState& state) {
  check_part(graph, variable, state);
  const Node& note =
      *Scope(graph)
           .without_control_dependencies()
           .add("ShardOf", {variable.ref()},
                {{"whole", state.whole.name}, {"shape", state.whole.shape}, {"first", state.range.first}},
                variable.name() + kSuffix)
           .node;
  graph.add_to_collection(kShards, note);
}

bool has_step_of_all_ranks(Session& session) {
  const StepVotes votes = detail::state_of(session).votes();
  return std::any_of(votes.begin(), votes.end(), [](const auto& vote) { return vote->ranks().empty(); });
}

// The whole tensor of a part, or one tensor for each rank, by their names in a checkpoint; parts[r] is where
// rank r's own goes.
std::map<std::string, Tensor> make_tensors(const detail::RankTensor& tensor, std::vector<Tensor>& parts) {
  if (tensor.state.kind == Kind::part) {
    const Tensor whole(tensor.variable.dtype(), tensor.state.whole.shape);
    for (const ElementRange& range : tensor.ranges) parts.push_back(detail::part_of(whole, range));
    return {{tensor.state.whole.name, whole}};
  }
  std::map<std::string, Tensor> all;
  for (std::size_t rank = 0; rank < tensor.ranges.size(); ++rank) {
    parts.emplace_back(tensor.variable.dtype(), tensor.variable.shape());
    all[detail::name_of_rank(tensor.variable.name(), static_cast<int>(rank))] = parts.back();
  }
  return all;
}

// Each rank comes to put the state together with a word: "" if it can, why it refuses, or what has no value.
// First of all, so that one that refuses need not know what the others do then.
constexpr char kRefused = 'r', kUninitialized = 'u';

void share_words(Group& group, const std::string& own) {
  const std::vector<std::string> words = group.allgather(own);
  for (const char kind : {kRefused, kUninitialized})
    for (std::size_t rank = 0; rank < words.size(); ++rank) {
      if (words[rank].empty() || words[rank][0] != kind) continue;
      const std::string text = words[rank].substr(1);
      if (kind == kRefused) throw AbortedError("rank {}: {}", rank, text);
      throw FailedPreconditionError("Attempting to use uninitialized value {} (of rank {})", text, rank);
    }
}

}  // namespace

void set_rank_state(Graph& graph, const Variable& variable, const RankState& state) {
  if (state.kind == Kind::part) note_part(graph, variable, state);
  if (state.kind != Kind::shared) put_in(graph, kRankVariables, variable);
  if (state.kind == Kind::scratch) put_in(graph, kScratchVariables, variable);
  if (state.kind == Kind::own || state.optional) put_in(graph, kOptionalVariables, variable);
}

RankState rank_state(const Variable& variable) {
  const Node& storage = *variable.ref().node;
  RankState state{.optional = is_in(kOptionalVariables, storage)};
  if (is_in(kRankVariables, storage))
    state.kind = is_in(kScratchVariables, storage) ? Kind::scratch : Kind::own;
  for (const Node* const note : storage.graph().collection(kShards))
    if (note->input(0).node == &storage) read_note(*note, state);
  return state;
}

std::vector<std::pair<Variable, RankState>> rank_parts(const Graph& graph) {
  const detail::RankStates states(graph);
  std::vector<std::pair<Variable, RankState>> parts;
  for (const Node* const note : graph.collection(kShards)) {
    const Variable variable = Variable::of(*note->input(0).node);
    parts.emplace_back(variable, states.of(variable));
  }
  return parts;
}

bool is_spread_over_ranks(Session& session, const Group& group) {
  if (group.size() == 1) return false;
  const Graph& graph = session.graph();
  if (!graph.collection(kShards).empty()) return true;
  const auto is_scratch = [](const Node* node) { return is_in(kScratchVariables, *node); };
  const auto& nodes = graph.collection(kRankVariables);
  return !std::all_of(nodes.begin(), nodes.end(), is_scratch) && has_step_of_all_ranks(session);
}

namespace detail {
namespace {

using nlohmann::json;

// Every element once.
void check_makes_whole(const RankTensor& tensor) {
  std::vector<ElementRange> ranges = tensor.ranges;
  std::erase_if(ranges, [](const ElementRange& range) { return range.count == 0; });
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  ranges.push_back({.first = tensor.state.whole.shape.elements()});
  std::int64_t next = 0;
  for (const ElementRange& range : ranges) {
    if (range.first != next)
      throw FailedPreconditionError(
          "the ranks' shards \"{}\" do not make up \"{}\" of shape {}: element {} is on {}",
          tensor.variable.name(), tensor.state.whole.name, tensor.state.whole.shape,
          std::min(next, range.first), range.first > next ? "no rank" : "two ranks");
    next += range.count;
  }
}

// This rank's side, sorted by names.
RankLayout own_side(const Graph& graph) {
  const RankStates states(graph);
  RankLayout layout;
  for (const Variable& variable : global_variables(graph)) {
    RankState state = states.of(variable);
    if (state.kind == Kind::shared || state.kind == Kind::scratch) continue;
    if (state.kind == Kind::own) state.range = {.count = variable.shape().elements()};
    layout.push_back({.variable = variable, .state = std::move(state), .ranges = {}});
  }
  std::sort(layout.begin(), layout.end(),
            [](const RankTensor& a, const RankTensor& b) { return a.variable.name() < b.variable.name(); });
  return layout;
}

std::string word_of(Session& session, const RankLayout& layout) {
  for (const RankTensor& tensor : layout)
    if (!storage_of(session, tensor.variable).initialized) return kUninitialized + tensor.variable.name();
  return "";
}

void check_alike(Group& group, const RankLayout& layout) {
  NamedTexts own;
  for (const RankTensor& tensor : layout)
    own.emplace_back(tensor.variable.name(), description_of(tensor.variable, tensor.state));
  const auto difference = compare_ranks(group, own);
  if (!difference) return;
  const auto &first = difference->texts[0],
             &other = difference->texts[static_cast<std::size_t>(difference->other)];
  if (!first || !other)
    throw FailedPreconditionError(
        "Ranks disagree on the variables: \"{}\" exists on rank {} but not on rank {}", difference->name,
        first ? 0 : difference->other, first ? difference->other : 0);
  throw FailedPreconditionError("Ranks disagree on the variables: \"{}\" is {} on rank 0 but {} on rank {}",
                                difference->name, *first, *other, difference->other);
}

// What rank 0 reads for one tensor of the layout: a part for each rank.
std::vector<Tensor> read_parts(CheckpointReader& reader, const RankTensor& tensor) {
  std::vector<Tensor> parts;
  for (const auto& [name, into] : make_tensors(tensor, parts)) reader.read(name, into);
  return parts;
}

bool holds_all_parts(const CheckpointIndex& index, const RankTensor& tensor) {
  if (tensor.state.kind == Kind::part) return index.tensors.count(tensor.state.whole.name) > 0;
  return ranks_in_checkpoint(index, tensor.variable.name()) == static_cast<int>(tensor.ranges.size());
}

}  // namespace

RankStates::RankStates(const Graph& graph) {
  for (const Node* const node : graph.collection(kOptionalVariables)) noted_[node].optional = true;
  for (const Node* const node : graph.collection(kRankVariables)) noted_[node].kind = Kind::own;
  for (const Node* const node : graph.collection(kScratchVariables)) noted_[node].kind = Kind::scratch;
  for (const Node* const note : graph.collection(kShards)) read_note(*note, noted_[note->input(0).node]);
}

const RankState& RankStates::of(const Variable& variable) const {
  static const RankState shared;
  const auto found = noted_.find(variable.ref().node);
  return found == noted_.end() ? shared : found->second;
}

std::string description_of(const Variable& variable, const RankState& state) {
  if (state.kind == Kind::part)
    return fmt::format("part of \"{}\" {} {}", state.whole.name, variable.dtype(), state.whole.shape);
  if (state.kind == Kind::scratch) return fmt::format("{}", variable.dtype());
  return fmt::format("{} {}", variable.dtype(), variable.shape());
}

RankLayout compare_rank_states(Group& group, Session& session) {
  if (!is_spread_over_ranks(session, group)) return {};
  RankLayout layout = own_side(session.graph());
  check_alike(group, layout);
  json own = json::array();
  for (const RankTensor& tensor : layout) own.push_back({tensor.state.range.first, tensor.state.range.count});
  for (const std::string& text : group.allgather(json_text(own))) {
    const json theirs = json::parse(text);
    for (std::size_t i = 0; i < layout.size(); ++i)
      layout[i].ranges.push_back({theirs[i][0].get<std::int64_t>(), theirs[i][1].get<std::int64_t>()});
  }
  for (const RankTensor& tensor : layout)
    if (tensor.state.kind == Kind::part) check_makes_whole(tensor);
  return layout;
}

Tensor part_of(const Tensor& whole, const ElementRange& range) {
  return whole.reshaped(Shape{whole.elements()}).rows(range.first, range.first + range.count);
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
                                              const RankState& state, int rank, int ranks) {
  const auto if_there = [&](const std::string& name) {
    return index.tensors.count(name) > 0 ? std::optional(name) : std::nullopt;
  };
  switch (state.kind) {
    case Kind::scratch: return {};
    case Kind::part: return if_there(state.whole.name);
    case Kind::shared: return if_there(variable.name());
    case Kind::own: break;
  }
  if (ranks > 1 && ranks_in_checkpoint(index, variable.name()) == ranks)
    return name_of_rank(variable.name(), rank);
  return rank == 0 ? if_there(variable.name()) : std::nullopt;
}

void scatter_checkpoint(Group& group, Session& session, const RankLayout& layout,
                        const std::optional<std::string>& path) {
  if (layout.empty()) return;
  const bool is_root = group.rank() == kRoot;
  std::optional<CheckpointReader> reader;
  json is_read = json::array();  // by tensor
  share_failure(group, [&] {
    if (is_root && path) reader.emplace(*path);
    for (const RankTensor& tensor : layout)
      is_read.push_back(reader && holds_all_parts(reader->index(), tensor));
  });
  is_read = json::parse(group.broadcast(json_text(is_read), kRoot));
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (!is_read[i].get<bool>()) continue;
    std::vector<Tensor> parts;
    share_failure(group, [&] {
      if (is_root) parts = read_parts(*reader, layout[i]);
    });
    VariableStorage& storage = storage_of(session, layout[i].variable);
    const Tensor value = memory_for_value(storage);
    group.scatter(parts, value, kRoot);
    share_failure(group, [&] { write_variable(storage, value); });
  }
}

}  // namespace detail

GatheredState::GatheredState(Session& session, Group& group) {
  if (!is_spread_over_ranks(session, group)) return;
  share_words(group, detail::word_of(session, detail::own_side(session.graph())));
  gather(session, group, detail::compare_rank_states(group, session));
}

GatheredState::GatheredState(Session& session, Group& group, const std::vector<detail::RankTensor>& layout) {
  if (layout.empty()) return;
  share_words(group, detail::word_of(session, layout));
  gather(session, group, layout);
}

void GatheredState::gather(Session& session, Group& group, const std::vector<detail::RankTensor>& layout) {
  const bool is_root = group.rank() == kRoot;
  std::vector<std::vector<Tensor>> parts(layout.size());
  std::vector<Tensor> own;
  detail::share_failure(group, [&] {
    for (std::size_t i = 0; is_root && i < layout.size(); ++i)
      tensors_.merge(make_tensors(layout[i], parts[i]));
    for (const detail::RankTensor& tensor : layout)
      own.push_back(detail::read_variable(detail::storage_of(session, tensor.variable)));
  });
  for (std::size_t i = 0; i < layout.size(); ++i) group.gather(own[i], parts[i], kRoot);
}

void GatheredState::refuse(const std::string& text, Group& group) {
  if (group.size() > 1) group.allgather(kRefused + text);
}

}  // namespace kolo
