#include <kolo/optimizer/distributed_optimizer.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include <kolo/collectives/engine/set_group.h>
#include <kolo/collectives/graph/group_node.h>
#include <kolo/collectives/graph/group_ops.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/launcher.h>
#include <kolo/core/base/process.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/runtime/group.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/gated_updates.h>
#include <kolo/optimizer/sharded_update.h>

namespace kolo {
namespace {

// Gradients that some ranks have and others lack: what a rank has, in words.
const char kWhole[] = "whole", kRows32[] = "rows32", kRows64[] = "rows64";

const char* kind_of(const Output& gradient, bool whole) {
  const auto slices = indexed_slices(gradient);
  if (whole || !slices) return kWhole;
  return slices->indices.dtype() == DType::i32 ? kRows32 : kRows64;
}

bool is_among(const Variable& variable, std::span<const Variable> list) {
  return std::find(list.begin(), list.end(), variable) != list.end();
}

// What the first rank that has it has, by the variable's name. Names of nodes hold no spaces.
std::map<std::string, std::string> known_kinds(const std::vector<std::string>& reports) {
  std::map<std::string, std::string> kinds;
  for (const std::string& report : reports) {
    std::istringstream in(report);
    for (std::string name, kind; in >> name >> kind;) kinds.emplace(name, kind);
  }
  return kinds;
}

Output zeros_of(const Scope& s, const Variable& variable, const std::string& kind) {
  const Shape& shape = variable.shape();
  if (!shape.is_fully_known())
    throw InvalidArgumentError("the gradient of \"{}\" may be absent, but its shape is {}; it must be known",
                               variable.name(), shape);
  if (kind == kWhole) return zeros(s, variable.dtype(), shape);
  return to_dense(s, {.values = zeros(s, variable.dtype(), shape.with_dim(0, 0)),
                      .indices = zeros(s, kind == kRows32 ? DType::i32 : DType::i64, {0}),
                      .dense_shape = shape});
}

// The pairs, with zeros where this rank has no gradient of a variable in `may_be_absent` and another rank of
// the group has one: no rows where that is slices, unless `whole`. Collective; all ranks give the same list
// of variables. Throws InvalidArgumentError for zeros of a shape that is not fully known.
std::vector<GradientPair> zeros_for_absent(const Scope& s, std::span<const GradientPair> pairs,
                                           std::span<const Variable> may_be_absent, Group& group,
                                           bool whole) {
  std::vector<GradientPair> all(pairs.begin(), pairs.end());
  std::string report;
  for (const GradientPair& pair : all)
    if (pair.gradient && is_among(pair.variable, may_be_absent))
      report += fmt::format("{} {}\n", pair.variable.name(), kind_of(pair.gradient, whole));
  const auto kinds = known_kinds(group.allgather(report));
  for (GradientPair& pair : all) {
    if (pair.gradient || !is_among(pair.variable, may_be_absent)) continue;
    const auto found = kinds.find(pair.variable.name());
    if (found != kinds.end())
      pair.gradient = zeros_of(s.named("absent_gradient"), pair.variable, found->second);
  }
  return all;
}

constexpr char kName[] = "DistributedOptimizer";

const std::string& name_of(const std::unique_ptr<Optimizer>& inner) {
  if (inner == nullptr) throw InvalidArgumentError("{}: there is no optimizer to wrap", kName);
  return inner->name();
}

void check_groups(const DistributedOptimizerOptions& options) {
  if (options.num_groups < 0)
    throw InvalidArgumentError("{}: num_groups is {}; it must be at least 0", kName, options.num_groups);
  if (options.num_groups > 0 && !options.groups.empty())
    throw InvalidArgumentError(
        "{}: both num_groups and groups are given; one of them says what is reduced together", kName);
  std::vector<Variable> seen;
  for (const auto& group : options.groups)
    for (const Variable& variable : group) {
      if (!variable) throw InvalidArgumentError("{}: groups lists an empty variable", kName);
      if (std::find(seen.begin(), seen.end(), variable) != seen.end())
        throw InvalidArgumentError("{}: variable \"{}\" stands in groups twice", kName, variable.name());
      seen.push_back(variable);
    }
}

void check(const DistributedOptimizerOptions& options) {
  if (options.op != ReduceOp::average && options.op != ReduceOp::sum && options.op != ReduceOp::adasum)
    throw InvalidArgumentError("{}: op is {}; gradients are combined by average, sum or adasum", kName,
                               kolo::name(options.op));
  if (options.backward_passes_per_step < 1)
    throw InvalidArgumentError("{}: backward_passes_per_step is {}; it must be at least 1", kName,
                               options.backward_passes_per_step);
  detail::check_predivision(options.gradient_predivide_factor, options.op);
  bucket_limits(kName, options.first_bucket_bytes, options.bucket_bytes);
  for (const Variable& variable : options.may_be_absent)
    if (!variable) throw InvalidArgumentError("{}: may_be_absent lists an empty variable", kName);
  check_groups(options);
}

void check_sharded(const DistributedOptimizerOptions& options, const Optimizer& inner) {
  if (!options.sharded) return;
  if (!inner.is_element_wise())
    throw InvalidArgumentError(
        "{}: sharded needs an optimizer that treats each element by itself, and \"{}\" does not say that it "
        "does; if it does, let it override is_element_wise",
        kName, inner.name());
  if (options.op == ReduceOp::adasum)
    throw InvalidArgumentError("{}: sharded combines gradients by average or sum, not by adasum", kName);
  if (!options.compression->is_element_wise())
    throw InvalidArgumentError("{}: sharded goes with compression none, fp16 and bf16, not with {}", kName,
                               options.compression->name());
  if (options.process_set != ProcessSet())
    throw InvalidArgumentError("{}: sharded divides variables among all ranks, not among a process set",
                               kName);
  if (options.skip_synchronize)
    throw InvalidArgumentError("{}: sharded reduces gradients itself; it does not go with skip_synchronize",
                               kName);
}

// What some op leaves open, the variable knows.
Output of_known_shape(const Scope& s, const GradientPair& pair) {
  return pair.gradient.shape().is_fully_known() ? pair.gradient
                                                : reshape(s, pair.gradient, pair.variable.shape());
}

std::vector<std::pair<std::string, std::string>> compared_settings(const DistributedOptimizerOptions& options,
                                                                   const Compression& compression) {
  return {{"the compression", compression.name()},
          {"backward_passes_per_step", fmt::format("{}", options.backward_passes_per_step)},
          {"average_aggregated_gradients", fmt::format("{}", options.average_aggregated_gradients)},
          {"gradient_predivide_factor", fmt::format("{}", options.gradient_predivide_factor)},
          {"dynamic loss scaling", fmt::format("{}", options.loss_scale.has_value())},
          {"sharded", fmt::format("{}", options.sharded)}};
}

class GroupReducer final : public GradientReducer {
 public:
  /// groups: by name.
  GroupReducer(const GroupAllReduceOptions& options, std::map<std::string, std::int64_t> groups,
               bool tolerates_overflow)
      : options_(options), groups_(std::move(groups)), tolerates_overflow_(tolerates_overflow) {}

  using GradientReducer::reduce;
  GroupReduced reduce(const Scope& s, const GroupReduceInputs& inputs) override {
    GroupAllReduceOptions options = options_;
    if (!groups_.empty())
      for (const std::string& name : inputs.names) {
        const auto found = groups_.find(name);
        options.groups.push_back(found == groups_.end() ? -1 : found->second);
      }
    GroupReduceInputs all = inputs;
    const std::size_t asked = inputs.slices.size();
    for (const GradientPair& pair : std::exchange(slices_, {})) {
      all.slices.push_back(*indexed_slices(pair.gradient));
      all.slice_names.push_back(pair.variable.name());
    }
    GroupReduced reduced = group_reduce(s.named(kName), all, options);
    for (std::size_t i = asked; i < reduced.slices.size(); ++i)
      gathered_.push_back(to_dense(s, reduced.slices[i]));
    reduced.slices.resize(asked);
    return reduced;
  }
  /// Gradients that are slices, which travel with the first reduction.
  void add_slices(const GradientPair& pair) { slices_.push_back(pair); }
  const Outputs& gathered() const { return gathered_; }
  ReduceOp op() const override { return options_.op; }
  bool tolerates_overflow() const override { return tolerates_overflow_; }

 private:
  GroupAllReduceOptions options_;
  std::map<std::string, std::int64_t> groups_;
  bool tolerates_overflow_;
  std::vector<GradientPair> slices_;
  Outputs gathered_;
};

}  // namespace

// What compute_gradients leaves for apply_gradients.
class DistributedOptimizer::Build {
 public:
  explicit Build(const DistributedOptimizerOptions& options) {
    if (options.backward_passes_per_step > 1)
      passes.emplace(options.backward_passes_per_step, options.average_aggregated_gradients);
    if (options.loss_scale) scaling.emplace(*options.loss_scale);
  }

  std::optional<detail::BackwardPasses> passes;
  std::optional<detail::LossScaling> scaling;
  detail::ShardedUpdate shards;
};

DistributedOptimizer::DistributedOptimizer(std::unique_ptr<Optimizer> inner,
                                           DistributedOptimizerOptions options)
    : Optimizer(name_of(inner)), inner_(std::move(inner)), options_(std::move(options)) {
  detail::require_init_under_launcher(kName);
  check(options_);
  if (options_.compression == nullptr) options_.compression = no_compression();
  check_sharded(options_, *inner_);
  build_ = std::make_unique<Build>(options_);
}

DistributedOptimizer::~DistributedOptimizer() = default;

std::vector<GradientPair> DistributedOptimizer::compute_gradients(Scope& s, Output loss,
                                                                  std::span<const Variable> variables,
                                                                  const ComputeGradientsOptions& options) {
  // The gate comes behind the reduction: before it, it would keep gradients from lying in their buckets.
  ComputeGradientsOptions inner_options = options;
  inner_options.gate = Gate::none;
  if (build_->scaling) inner_options.grad_loss = build_->scaling->scaled(s, loss, options.grad_loss);
  std::vector<GradientPair> pairs =
      with_zeros(s, inner_->compute_gradients(s, loss, variables, inner_options));
  if (build_->passes) {
    for (GradientPair& pair : pairs)
      if (pair.gradient) pair.gradient = of_known_shape(s, pair);
    pairs = build_->passes->sum(s, pairs);
  }
  if (!options_.skip_synchronize) pairs = synchronize(s, pairs);
  if (build_->scaling && is_sharded())
    build_->scaling->decide_by(build_->shards.all_finite(s.name_scope("loss_scale"), pairs));
  if (build_->scaling)
    pairs = options_.skip_synchronize || is_sharded() ? build_->scaling->unscaled_unchecked(s, pairs)
                                                      : build_->scaling->unscaled(s, pairs);
  return options.gate == Gate::graph ? gated(s, std::move(pairs)) : pairs;
}

// Before sums of several passes, so that these are the same variables on all ranks.
std::vector<GradientPair> DistributedOptimizer::with_zeros(const Scope& s,
                                                           std::vector<GradientPair> pairs) const {
  if (options_.may_be_absent.empty() || is_alone()) return pairs;
  std::optional<detail::SetGroup> some;
  if (options_.process_set != ProcessSet()) some.emplace(options_.process_set);
  Group& group = some ? *some : world_group();
  return zeros_for_absent(s, pairs, options_.may_be_absent, group, options_.sparse_as_dense);
}

std::vector<GradientPair> DistributedOptimizer::synchronize(Scope& s, std::span<const GradientPair> local) {
  const bool alone = is_alone();
  std::vector<GradientPair> pairs(local.begin(), local.end());
  GroupAllReduceOptions group = {.op = options_.op,
                                 .first_bucket_bytes = options_.first_bucket_bytes,
                                 .bucket_bytes = options_.bucket_bytes,
                                 .predivide_factor = options_.gradient_predivide_factor,
                                 .sharded = is_sharded(),
                                 .compared = compared_settings(options_, *options_.compression),
                                 .process_set = options_.process_set};
  for (const GradientPair& pair : pairs)
    if (std::count(options_.may_be_absent.begin(), options_.may_be_absent.end(), pair.variable) > 0)
      group.last.push_back(pair.variable.name());
  std::vector<GradientPair*> to_reduce, to_gather;
  std::vector<GradientPair> whole;
  std::vector<Variable> variables;
  for (GradientPair& pair : pairs) {
    if (!pair.gradient) continue;
    if (is_sharded() && keeps_slices(pair))
      throw InvalidArgumentError(
          "{}: sharded takes whole gradients, but that of \"{}\" is slices; set sparse_as_dense", kName,
          pair.variable.name());
    if (keeps_slices(pair)) {
      if (alone) group.of_one_rank.push_back(pair.variable.name());
      else to_gather.push_back(&pair);
      continue;
    }
    to_reduce.push_back(&pair);
    whole.push_back({of_known_shape(s, pair), pair.variable});
    variables.push_back(pair.variable);
  }
  std::map<std::string, std::int64_t> groups;
  const std::vector<std::int64_t> numbers = groups_of(variables);
  for (std::size_t i = 0; i < numbers.size(); ++i) groups[variables[i].name()] = numbers[i];
  const auto compression = alone ? no_compression() : options_.compression;
  // What is left out here would be missing on several ranks.
  if (alone && (options_.sharded || options_.compression->name() != compression->name()))
    for (const Variable& variable : variables) group.of_one_rank.push_back(variable.name());
  GroupReducer reducer(group, std::move(groups), options_.loss_scale.has_value());
  for (const GradientPair* pair : to_gather) reducer.add_slices(*pair);
  // Without any gradient too: the other ranks, which may have some, compare their schedule with this one's.
  const Outputs reduced = compression->reduce(s, whole, reducer);
  for (std::size_t i = 0; i < to_reduce.size(); ++i) to_reduce[i]->gradient = reduced[i];
  for (std::size_t i = 0; i < to_gather.size(); ++i) to_gather[i]->gradient = reducer.gathered().at(i);
  if (is_sharded()) build_->shards.add(pairs);
  return pairs;
}

// Nobody to reduce gradients with.
bool DistributedOptimizer::is_alone() const {
  if (options_.process_set == ProcessSet()) return process().size == 1;
  return options_.process_set.size() == 1 || !options_.process_set.contains_this_rank();
}

bool DistributedOptimizer::keeps_slices(const GradientPair& pair) const {
  return !options_.sparse_as_dense && indexed_slices(pair.gradient);
}

// Of each variable; empty without groups.
std::vector<std::int64_t> DistributedOptimizer::groups_of(std::span<const Variable> variables) const {
  std::vector<std::int64_t> numbers;
  const auto count = static_cast<std::int64_t>(variables.size());
  for (std::int64_t i = 0; i < count; ++i) {
    if (options_.num_groups > 0)
      numbers.push_back(i * std::min<std::int64_t>(options_.num_groups, count) / count);
    else if (!options_.groups.empty()) numbers.push_back(-1);
  }
  for (std::size_t g = 0; g < options_.groups.size(); ++g)
    for (const Variable& member : options_.groups[g]) {
      const auto found = std::find(variables.begin(), variables.end(), member);
      if (found == variables.end())
        throw InvalidArgumentError("{}: groups lists \"{}\", which has no gradient", kName, member.name());
      numbers[static_cast<std::size_t>(found - variables.begin())] = static_cast<std::int64_t>(g);
    }
  return numbers;
}

Operation DistributedOptimizer::apply_gradients(Scope& s, std::span<const GradientPair> gradients,
                                                const ApplyOptions& options) {
  using Pairs = std::span<const GradientPair>;
  const auto apply = [&](Pairs pairs) { return inner_->apply_gradients(s, pairs, options); };
  const auto apply_good = [&](Pairs pairs) {
    return build_->scaling ? build_->scaling->in_good_step(s, pairs, apply) : apply(pairs);
  };
  const bool any = std::any_of(gradients.begin(), gradients.end(),
                               [](const GradientPair& pair) { return bool(pair.gradient); });
  const bool in_parts = is_sharded() && any;
  std::vector<GradientPair> parts;
  if (in_parts) parts = build_->shards.parts(s, gradients);
  const auto update = [&](Pairs pairs) {
    return in_parts ? build_->shards.update(s, pairs, apply_good) : apply_good(pairs);
  };
  const Pairs pairs = in_parts ? Pairs(parts) : gradients;
  return build_->passes ? build_->passes->in_last_pass(s, pairs, update) : update(pairs);
}

bool DistributedOptimizer::is_sharded() const { return options_.sharded && process().size > 1; }

Variable DistributedOptimizer::find_slot(const Variable& variable, const std::string& slot) const {
  const Variable part = build_->shards.part_of(variable);
  return inner_->find_slot(part ? part : variable, slot);
}

Variable DistributedOptimizer::loss_scale() const {
  return build_->scaling ? build_->scaling->scale() : Variable();
}

}  // namespace kolo
