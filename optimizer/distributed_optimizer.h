// Synchronous data-parallel training: each rank computes the gradients of its own samples, all apply their
// average.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/reduce_op.h>
#include <kolo/optimizer/optimizer.h>

namespace kolo {

struct DistributedOptimizerOptions {
  ReduceOp op = ReduceOp::average;      // average or sum
  std::int64_t first_bucket_bytes = 0;  // upper bound of the first bucket; 0: KOLO_FIRST_BUCKET_BYTES
  std::int64_t bucket_bytes = 0;        // of the others; 0: KOLO_BUCKET_BYTES
  // Slices (core/graph/indexed_slices.h) become whole gradients on one rank too, as they do on several.
  bool sparse_as_dense = false;
};

/// Wraps any optimizer: between its computing and its applying of gradients they are reduced over all ranks.
/// Its slots, its names and so its checkpoints stay what they are without the wrapper.
class DistributedOptimizer : public Optimizer {
 public:
  /// Throws InvalidArgumentError if there is no inner optimizer, or for an op that gradients cannot be
  /// combined with.
  explicit DistributedOptimizer(std::unique_ptr<Optimizer> inner, DistributedOptimizerOptions options = {});

  using Optimizer::compute_gradients;
  /// Pairs (gradient reduced over the ranks, variable), in the order of `variables`. A gradient that is
  /// absent stays so; it must then be absent on all ranks. loss: f32|f64, any shape (summed). Throws as the
  /// inner optimizer does. One rank: results are bit-identical to the inner optimizer's. Cost per step:
  /// 2(n−1)/n · (bytes of all gradients) sent per rank, overlapped with the backward pass.
  /// Slices: on several ranks they are made whole inside their bucket and reduced like all others, so rules
  /// that touch listed rows alone (Momentum, Adagrad, …) move all rows there. One rank keeps them, see
  /// `sparse_as_dense`.
  std::vector<GradientPair> compute_gradients(Scope& s, Output loss, std::span<const Variable> variables,
                                              const ComputeGradientsOptions& options = {}) override;
  Operation apply_gradients(Scope& s, std::span<const GradientPair> gradients,
                            const ApplyOptions& options = {}) override;
  Variable find_slot(const Variable& variable, const std::string& slot) const override;

 private:
  bool keeps_slices(const GradientPair& pair) const;

  std::unique_ptr<Optimizer> inner_;
  DistributedOptimizerOptions options_;
};

}  // namespace kolo
