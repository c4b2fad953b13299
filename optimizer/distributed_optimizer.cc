#include <kolo/optimizer/distributed_optimizer.h>

#include <utility>

#include <kolo/collectives/graph_ops.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/reshape.h>

namespace kolo {
namespace {

const std::string& name_of(const std::unique_ptr<Optimizer>& inner) {
  if (inner == nullptr) throw InvalidArgumentError("DistributedOptimizer: there is no optimizer to wrap");
  return inner->name();
}

// What some op leaves open, the variable knows.
Output of_known_shape(const Scope& s, const GradientPair& pair) {
  return pair.gradient.shape().is_fully_known() ? pair.gradient
                                                : reshape(s, pair.gradient, pair.variable.shape());
}

}  // namespace

DistributedOptimizer::DistributedOptimizer(std::unique_ptr<Optimizer> inner,
                                           DistributedOptimizerOptions options)
    : Optimizer(name_of(inner)), inner_(std::move(inner)), options_(options) {
  if (options_.op != ReduceOp::average && options_.op != ReduceOp::sum)
    throw InvalidArgumentError("DistributedOptimizer: op is {}; gradients are combined by average or sum",
                               kolo::name(options_.op));
}

std::vector<GradientPair> DistributedOptimizer::compute_gradients(Scope& s, Output loss,
                                                                  std::span<const Variable> variables,
                                                                  const ComputeGradientsOptions& options) {
  // The gate comes behind the reduction: before it, it would keep gradients from lying in their buckets.
  ComputeGradientsOptions inner_options = options;
  inner_options.gate = Gate::none;
  std::vector<GradientPair> pairs = inner_->compute_gradients(s, loss, variables, inner_options);
  Outputs local;
  std::vector<std::string> names;
  GroupAllReduceOptions group = {.op = options_.op,
                                 .first_bucket_bytes = options_.first_bucket_bytes,
                                 .bucket_bytes = options_.bucket_bytes};
  std::vector<GradientPair*> to_reduce;
  for (GradientPair& pair : pairs) {
    if (!pair.gradient) continue;
    if (keeps_slices(pair)) {
      group.of_one_rank.push_back(pair.variable.name());
      continue;
    }
    to_reduce.push_back(&pair);
    local.push_back(of_known_shape(s, pair));
    names.push_back(pair.variable.name());
  }
  // Without any gradient too: the other ranks, which may have some, compare their schedule with this one's.
  const Outputs reduced = group_allreduce(s.named("DistributedOptimizer"), local, names, group);
  for (std::size_t i = 0; i < to_reduce.size(); ++i) to_reduce[i]->gradient = reduced[i];
  return options.gate == Gate::graph ? gated(s, std::move(pairs)) : pairs;
}

bool DistributedOptimizer::keeps_slices(const GradientPair& pair) const {
  return process().size == 1 && !options_.sparse_as_dense && indexed_slices(pair.gradient);
}

Operation DistributedOptimizer::apply_gradients(Scope& s, std::span<const GradientPair> gradients,
                                                const ApplyOptions& options) {
  return inner_->apply_gradients(s, gradients, options);
}

Variable DistributedOptimizer::find_slot(const Variable& variable, const std::string& slot) const {
  return inner_->find_slot(variable, slot);
}

}  // namespace kolo
