// Synchronous training of several workers over shared variables: their gradients are added where the
// variables are, and a chief applies the mean.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/core/ops/queues.h>
#include <kolo/core/training/hook.h>
#include <kolo/optimizer/optimizer.h>

namespace kolo {

/// Of SyncReplicasOptimizer.
struct SyncReplicasOptions {
  /// The mean's bits do not depend on which worker came first; all gradients of an update are kept until
  /// then.
  bool ordered = false;
};

/// TensorFlow 1's SyncReplicasOptimizer. For each variable an accumulator `<var>/grad_accum`, on the CPU of
/// the variable's task; a queue of tokens `sync_token_q`, beside the global step; local variables
/// `sync_rep_local_step`, `sync_rep_last_token` and `sync_rep_local_generation`, which are each worker's own.
/// Workers all make the same graph.
///
/// A worker's run adds its gradients, takes a token, and makes the token its local step. The chief's thread
/// waits for `replicas_to_aggregate` gradients of every variable, applies their mean by the inner optimizer,
/// counts the step and gives out tokens that bear it. Gradients of an older step are dropped: with fewer
/// replicas to aggregate than there are, the rest are backups for slow ones. Unless there are more gradients
/// to aggregate than replicas, a worker takes one token of each step, never a second one that is another's.
class SyncReplicasOptimizer : public Optimizer {
 public:
  /// inner: its rule updates the variables. total_num_replicas: workers; 0: as many as are aggregated. Throws
  /// InvalidArgumentError for numbers that are not positive.
  SyncReplicasOptimizer(std::unique_ptr<Optimizer> inner, int replicas_to_aggregate,
                        int total_num_replicas = 0, SyncReplicasOptions options = {});

  /// The inner optimizer's: what clips them sees the worker's own.
  std::vector<GradientPair> compute_gradients(Scope& s, Output loss, std::span<const Variable> variables,
                                              const ComputeGradientsOptions& options = {}) override;
  using Optimizer::compute_gradients;
  /// The operation of a worker's step. Once. f32 and f64. Throws InvalidArgumentError `Must supply at least
  /// one variable` and `Global step is required to check staleness`.
  Operation apply_gradients(Scope& s, std::span<const GradientPair> gradients,
                            const ApplyOptions& options = {}) override;
  Variable find_slot(const Variable& variable, const std::string& slot) const override {
    return inner_->find_slot(variable, slot);
  }

  // What the hook runs, for who runs it without one. They throw FailedPreconditionError `Should be called
  // after apply_gradients().`, the tokens' `get_init_tokens_op() should be called after apply_gradients().`

  /// Of the chief, before it begins: ends what is left of an earlier chief's time. Workers that began before
  /// it end in AbortedError, `sync_token_q was reset by the chief` where they wait for a token, and begin
  /// anew: none of their gradients counts twice, or is lost while they wait.
  Operation chief_init_op() const;
  /// Of the other workers.
  Operation local_step_init_op() const;
  /// Gives out num_tokens tokens of the present step, once; −1: replicas_to_aggregate. Throws
  /// InvalidArgumentError `Too few tokens to finish the first step: <n> (given) vs <N−M> (needed)`.
  Operation init_tokens_op(int num_tokens = -1) const;
  /// One update, when all gradients are there: of the chief's thread, again and again.
  Operation update_op() const;
  /// Workers that find no token then end in OutOfRangeError.
  Operation close_op() const;

  /// For a monitored session of the graph. Of the chief: runs init and tokens, and then the updates on a
  /// thread of the session's coordinator, until that stops. A session whose variables have no values throws
  /// FailedPreconditionError `Init operations did not make model ready for SyncReplicasOptimizer local_init.`
  std::shared_ptr<SessionRunHook> make_session_run_hook(bool is_chief, int num_tokens = -1);

 private:
  struct Nodes;
  const Nodes& nodes() const;
  Operation add_push(const Scope& s, const GradientPair& pair, Nodes& nodes,
                     std::vector<GradientPair>& means) const;
  void add_update(const Scope& s, const Scope& chief, std::span<const GradientPair> means,
                  const ApplyOptions& options, Nodes& nodes);
  Operation add_taken(const Scope& s, const Nodes& nodes) const;
  static Operation add_local_init(const Scope& s, const Nodes& nodes);

  std::unique_ptr<Optimizer> inner_;
  const int replicas_to_aggregate_;
  const int total_num_replicas_;
  const SyncReplicasOptions options_;
  std::shared_ptr<Nodes> nodes_;
};

}  // namespace kolo
