#include <kolo/optimizer/sharded_update.h>

#include <set>
#include <string>

#include <kolo/collectives/graph/group_ops.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/optimizer/optimizer_internal.h>

namespace kolo::detail {
namespace {

// A slot's place in a checkpoint is the one that it has where each rank updates whole variables.
void mark_slot(Graph& graph, const Variable& slot, const Variable& part) {
  if (slot.shape() != part.shape())
    throw InvalidArgumentError(
        "sharded: the optimizer keeps \"{}\" of shape {} for {} elements of a variable; state of a rule that "
        "is element-wise has the shape of what it updates",
        slot.name(), slot.shape(), part.shape());
  const Variable whole = whole_variable(part);
  const std::string name = whole.name() + slot.name().substr(part.name().size());
  for (const auto& [other, of] : rank_parts(graph))
    if (of.whole.name == name)
      throw InvalidArgumentError("sharded: \"{}\" and \"{}\" are both shards of \"{}\"", other.name(),
                                 slot.name(), name);
  set_rank_state(graph, slot,
                 {.kind = RankState::Kind::part,
                  .whole = {.name = name, .shape = whole.shape()},
                  .range = {.first = part.ref().node->attr<std::int64_t>("first")}});
}

// A rank keeps one part of a variable, and its state for that. What all ranks own is compared: this rank's
// part may be the same by chance.
void check_layout(const Graph& graph, const Variable& variable, const ShardedGradient& gradient) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const auto gathered = gathered_by(graph.node(id));
    if (!gathered || gathered->first == gradient.group) continue;
    for (const UpdatedPart& part : gathered->second)
      if (&whole_storage(*part.part.node) == variable.ref().node &&
          parts_of_ranks(*gathered->first, part.gradient) != parts_of_ranks(*gradient.group, gradient.index))
        throw InvalidArgumentError(
            "sharded: variable \"{}\" is updated by {} and {}, which divide it among the ranks in different "
            "ways; all sharded updates of a variable must reduce the same variables in the same buckets",
            variable.name(), gathered->first->name(), gradient.group->name());
  }
}

}  // namespace

void ShardedUpdate::add(std::span<const GradientPair> reduced) {
  std::map<const Node*, std::vector<OwnedPart>> parts;
  for (const GradientPair& pair : reduced) {
    if (!pair.gradient) continue;
    const auto source = sharded_source(pair.gradient);
    if (!source) throw InternalError("sharded: {} is no result of the reduction", pair.gradient.name());
    auto& own = parts[source->group];
    if (own.empty()) own = own_parts(*source->group);
    members_[pair.variable.ref().node].push_back(
        {*source, own.at(static_cast<std::size_t>(source->index)), {}});
  }
}

Output ShardedUpdate::all_finite(const Scope& s, std::span<const GradientPair> reduced) const {
  const Scope scope = s.name_scope("all_finite");
  Outputs own;
  for (const GradientPair& pair : reduced)
    if (pair.gradient)
      own.push_back(own_shard(scope, pair.gradient, members_.at(pair.variable.ref().node).back().own));
  const Output here = cast(scope, kolo::all_finite(scope, own), DType::f32);
  const Output ranks = scheduled_allreduce(scope, here, ReduceOp::average);
  return greater_equal(scope, ranks, fill(scope, DType::f32, {}, 1));
}

// Of several compute_gradients the one that made the gradient; the last where that does not tell.
ShardedUpdate::Member& ShardedUpdate::member_of(std::vector<Member>& members, const Output& gradient) {
  const auto source = sharded_source(gradient);
  for (Member& one : members)
    if (source && one.gradient.group == source->group) return one;
  return members.back();
}

ShardedUpdate::Member& ShardedUpdate::member(const GradientPair& pair) {
  const auto found = members_.find(pair.variable.ref().node);
  if (found == members_.end())
    throw InvalidArgumentError(
        "sharded: variable \"{}\" is to be updated, but the optimizer has reduced no gradient of it; "
        "compute_gradients must have been called for it",
        pair.variable.name());
  Member& one = member_of(found->second, pair.gradient);
  if (one.part)
    throw InvalidArgumentError(
        "sharded: variable \"{}\" is to be updated twice with the gradients of one compute_gradients",
        pair.variable.name());
  check_alike(pair);
  if (applied_.count(one.gradient.group) > 0)
    throw InvalidArgumentError(
        "sharded: variable \"{}\" is to be updated, but other gradients of the same compute_gradients have "
        "been "
        "applied; all of them belong in one apply_gradients",
        pair.variable.name());
  return one;
}

std::vector<GradientPair> ShardedUpdate::parts(const Scope& s, std::span<const GradientPair> whole) {
  for (const GradientPair& pair : whole)
    if (pair.gradient) check_layout(s.graph(), pair.variable, member(pair).gradient);
  const Scope scope = s.name_scope("own_shards");
  std::vector<GradientPair> pairs;
  applying_.clear();
  for (const GradientPair& pair : whole) {
    if (!pair.gradient) continue;
    Member& one = member(pair);
    applying_[pair.variable.ref().node] = one.gradient;
    one.part = variable_part(scope, pair.variable, one.own.first, one.own.count);
    pairs.push_back({own_shard(scope, pair.gradient, one.own), one.part});
  }
  for (const auto& [variable, gradient] : applying_) applied_.insert(gradient.group);
  return pairs;
}

Operation ShardedUpdate::update(const Scope& s, std::span<const GradientPair> parts,
                                const std::function<Operation(std::span<const GradientPair>)>& apply) const {
  std::set<const Node*> known;
  for (const Variable& variable : global_variables(s.graph())) known.insert(variable.ref().node);
  std::vector<Operation> done = {apply(parts)};
  for (const Variable& made : global_variables(s.graph())) {
    if (known.count(made.ref().node) > 0) continue;
    for (const GradientPair& pair : parts)
      if (made.name().rfind(pair.variable.name() + '/', 0) == 0) mark_slot(s.graph(), made, pair.variable);
  }

  const Scope scope = s.name_scope("gather_shards");
  std::map<const Node*, std::pair<std::vector<UpdatedPart>, std::vector<Variable>>> by_group;
  std::vector<const Node*> groups;  // in the order of the pairs, which is the same on all ranks
  for (const GradientPair& pair : parts) {
    const Variable whole = whole_variable(pair.variable);
    const ShardedGradient& gradient = applying_.at(whole.ref().node);
    if (by_group.count(gradient.group) == 0) groups.push_back(gradient.group);
    auto& [updated, variables] = by_group[gradient.group];
    updated.push_back({gradient.index, pair.variable.ref()});
    variables.push_back(whole);
  }
  for (const Node* reduction : groups) {
    const auto& [updated, variables] = by_group[reduction];
    const Outputs values = gather_shards(scope, *reduction, updated);
    for (std::size_t i = 0; i < values.size(); ++i)
      done.push_back(assign(scope, variables[i], reshape(scope, values[i], variables[i].shape())));
  }
  return group(scope, done);
}

Variable ShardedUpdate::part_of(const Variable& variable) const {
  const auto found = members_.find(variable.ref().node);
  if (found == members_.end()) return {};
  for (const Member& one : found->second)
    if (one.part) return one.part;
  return {};
}

}  // namespace kolo::detail
