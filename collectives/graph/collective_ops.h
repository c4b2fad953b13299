// Collectives as nodes of a graph, with gradients: the eager engine's operations (collectives/engine/eager.h)
// under the nodes' names, or, where graph and step tell enough beforehand, a schedule that asks nobody.
#pragma once

#include <kolo/collectives/engine/process_set.h>
#include <kolo/collectives/reduce/reduction.h>
#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/normalization.h>

namespace kolo {

// Every rank of the set runs a step that has the node, or the others wait for it until the stall watchdog
// speaks. Without init(): FailedPreconditionError when the step runs. Ranks may reach their nodes in
// different orders. What the ranks must agree on, and the errors where they do not, are those of the eager
// function of the same name; the step fails with them. A training step's gradients do not need these:
// DistributedOptimizer reduces them without asking the other ranks each time.

/// x: any numeric type, any shape, the same on all ranks. Sums and averages of floating tensors whose shape
/// is known, over all ranks and without scales, are reduced by a compiled schedule. Gradient: the same
/// reduction of dy for sum and average; others: InvalidArgumentError `has no gradient`.
Output allreduce(const Scope& s, Output x, const Reduction& reduction = ReduceOp::average,
                 const ProcessSet& set = {});

/// x: [n_r, …rest] → [Σ n_r, …rest] in rank order. Gradient: this rank's rows of the sum over the ranks.
Output allgather(const Scope& s, Output x, const ProcessSet& set = {});

/// x: [n, …rest], the same shape on all ranks → this rank's rows of the reduced x, as the eager function
/// splits them. Gradient: for sum the ranks' dy together, for average that ÷ R; others `has no gradient`.
Output reduce_scatter(const Scope& s, Output x, const Reduction& reduction = ReduceOp::average,
                      const ProcessSet& set = {});

/// x: any shape, the same on all ranks → root's (the job's number of a rank). Gradient: the ranks' sum on the
/// root, zero elsewhere.
Output broadcast(const Scope& s, Output x, int root, const ProcessSet& set = {});

/// What alltoall makes in a graph: rows, and how many came from each rank.
struct AlltoallOutputs {
  Output rows;
  Output splits;  // i64 [R]: rows from each rank
};
/// x: [n, …rest]; splits: i64 [R], rows for each rank; empty: as many for each. Gradient: the way back.
AlltoallOutputs alltoall(const Scope& s, Output x, Output splits = {}, const ProcessSet& set = {});

/// x: [n_r, …rest] → [Σ n_r, …rest] on root, no rows elsewhere. Gradient: each rank's rows of root's dy.
Output gather_to(const Scope& s, Output x, int root, const ProcessSet& set = {});

/// Root's rows in equal shares; x of the other ranks is not looked at. Gradient: all shares on the root, zero
/// elsewhere.
Output scatter_from(const Scope& s, Output x, int root, const ProcessSet& set = {});

/// batch_norm (core/ops/normalization.h) over the samples of all ranks together: mean, variance and moving
/// averages are the same everywhere, each sample counts once however many a rank has, none too. x's rank and
/// number of channels must be known. Gradients flow from y to x, scale and offset; that of x counts what x
/// does to the other ranks' y as well, so that averaging parameters' gradients over the ranks gives those of
/// the whole batch. Every rank runs it in the same steps. Cost: one reduction of 2C + 1 numbers forwards and
/// one backwards, which the step waits for. It has no inference form: an evaluation graph takes
/// batch_norm_inference, or models::batch_norm under the same name. Throws as batch_norm does.
BatchNormResult sync_batch_norm(const Scope& s, Output x, Output scale, Output offset, Output moving_mean,
                                Output moving_variance, BatchNormOptions options = {});

}  // namespace kolo
