// Synchronous data-parallel training: each rank computes the gradients of its own samples, all apply their
// average.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/engine/process_set.h>
#include <kolo/collectives/reduce/reduction.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/loss_scale.h>
#include <kolo/optimizer/optimizer.h>

namespace kolo {

/// All ranks that reduce together must give the same; what differs is found before the first step.
struct DistributedOptimizerOptions {
  ReduceOp op = ReduceOp::average;      // average, sum or adasum (of whole gradients only)
  std::int64_t first_bucket_bytes = 0;  // upper bound of the first bucket; 0: KOLO_FIRST_BUCKET_BYTES
  std::int64_t bucket_bytes = 0;        // of the others; 0: KOLO_BUCKET_BYTES
  // Slices (core/graph/indexed_slices.h) become whole gradients.
  bool sparse_as_dense = false;
  // How gradients travel (optimizer/compression); none: as they are. One rank does not compress.
  std::shared_ptr<const Compression> compression = nullptr;
  // Runs of the training step for each update. In all but the last one gradients are summed on this rank
  // alone; the last one reduces the sum and applies it, and only it counts the global step.
  int backward_passes_per_step = 1;
  bool average_aggregated_gradients = false;  // that sum is divided by backward_passes_per_step
  // Average alone: gradients are divided by it before they are summed over the R ranks, and the sum is
  // multiplied by it ÷ R. Between 1/65536 and 65536.
  double gradient_predivide_factor = 1;
  // Gradients that are reduced at once, in a bucket of their own, whatever their size: `num_groups` groups of
  // about as many each, in the order of the variables; or these variables' (the others' are not grouped).
  int num_groups = 0;
  std::vector<std::vector<Variable>> groups = {};
  // compute_gradients gives this rank's own gradients: the caller combines them, by `synchronize` or in
  // another way, before they are applied.
  bool skip_synchronize = false;
  std::optional<DynamicLossScale> loss_scale = {};  // none: the loss is differentiated as it is
  // The ranks whose gradients are reduced, among them alone; R is their number then. Each rank gives a set
  // that it is in, or one that it is not in: then it applies its own gradients, as the inner optimizer does.
  ProcessSet process_set = {};
  // Variables whose gradient some ranks may lack, as their loss does not depend on them: these ranks
  // contribute zeros. compute_gradients is collective then. A variable that no rank has a gradient of is left
  // alone.
  std::vector<Variable> may_be_absent = {};
  // Each rank updates a part of every variable and keeps the optimizer's state for that part alone (ZeRO
  // stage 1). Optimizers that are element-wise (Optimizer::is_element_wise), LARS and LAMB; op sum or
  // average; compression none, fp16 or bf16; no slices, no skip_synchronize; all ranks.
  bool sharded = false;
};

/// Wraps any optimizer: between its computing and its applying of gradients they are reduced over all ranks,
/// or those of a process set.
/// Its slots, its names and so its checkpoints stay what they are without the wrapper; state of the wrapper's
/// own (sums, residuals, the loss scale) may be missing from a checkpoint and then starts afresh.
/// One thread at a time, as Optimizer.
class DistributedOptimizer : public Optimizer {
 public:
  /// Throws InvalidArgumentError if there is no inner optimizer, or for options that cannot be,
  /// FailedPreconditionError where a launcher has started several ranks and init() was not called.
  explicit DistributedOptimizer(std::unique_ptr<Optimizer> inner, DistributedOptimizerOptions options = {});
  ~DistributedOptimizer() override;

  using Optimizer::compute_gradients;
  /// Pairs (gradient reduced over the ranks, variable), in the order of `variables`. A gradient that is
  /// absent stays so; it must then be absent on all ranks, or `may_be_absent`. loss: f32|f64, any shape
  /// (summed). Throws as the inner optimizer does. One rank: results are bit-identical to the inner
  /// optimizer's. Cost per step: 2(n−1)/n · (bytes of all gradients) sent per rank, overlapped with the
  /// backward pass. With several backward passes for a step the gradients exist in the last one only: what is
  /// computed from them is skipped in the others, and cannot be fetched there. Slices stay slices: every rank
  /// gets the rows of all, ÷ R for an average, and the rule sums those that several ranks have. In a step in
  /// which the rows of all ranks are more bytes than the whole gradient, that is reduced instead, and the
  /// rows that some rank has are taken out of it: the rule sees the same rows, each once. With
  /// `sparse_as_dense`, and with several backward passes for a step, slices become whole gradients: rules
  /// that touch listed rows alone (Momentum, Adagrad, …) move all rows then.
  /// Sharded, the gradients have their whole shapes, but what is read of them decides how they are reduced:
  /// where nothing but apply_gradients takes the gradients of a bucket, each rank gets its part alone, and
  /// they cannot be fetched; a bucket of which something else takes one (clipping, a summary) is whole.
  std::vector<GradientPair> compute_gradients(Scope& s, Output loss, std::span<const Variable> variables,
                                              const ComputeGradientsOptions& options = {}) override;
  /// The same gradients reduced over the ranks: what compute_gradients does unless `skip_synchronize`.
  std::vector<GradientPair> synchronize(Scope& s, std::span<const GradientPair> local);
  Operation apply_gradients(Scope& s, std::span<const GradientPair> gradients,
                            const ApplyOptions& options = {}) override;
  /// Sharded, on several ranks: the slot of this rank's part, a vector.
  Variable find_slot(const Variable& variable, const std::string& slot) const override;
  /// The variable that dynamic loss scaling multiplies the loss by; none without it, and before gradients
  /// were computed.
  Variable loss_scale() const;

 private:
  class Build;
  bool is_alone() const;
  std::vector<GradientPair> with_zeros(const Scope& s, std::vector<GradientPair> pairs) const;
  bool keeps_slices(const GradientPair& pair) const;
  std::vector<std::int64_t> groups_of(std::span<const Variable> variables) const;
  bool is_sharded() const;

  std::unique_ptr<Optimizer> inner_;
  DistributedOptimizerOptions options_;
  std::unique_ptr<Build> build_;
};

}  // namespace kolo
