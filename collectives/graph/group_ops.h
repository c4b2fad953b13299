// Reductions over the ranks as nodes of a graph.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/engine/process_set.h>
#include <kolo/collectives/reduce/reduction.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/graph/scope.h>

namespace kolo {

/// How a group of gradients is reduced. All ranks give the same.
struct GroupAllReduceOptions {
  ReduceOp op = ReduceOp::average;
  std::int64_t first_bucket_bytes = 0;  // upper bound of the first bucket; 0: KOLO_FIRST_BUCKET_BYTES
  std::int64_t bucket_bytes = 0;        // of the others; 0: KOLO_BUCKET_BYTES
  // Average alone: the ranks' gradients are divided by it before they are summed, and the sum is multiplied
  // by it ÷ R. Positive.
  double predivide_factor = 1;
  // Of each gradient, the group that it is reduced with, in one bucket; −1: none. Empty: no groups.
  std::vector<std::int64_t> groups = {};
  // Each rank is to update a part of every variable alone (collectives/graph/sharding.h): a bucket of which
  // the graph takes nothing but own_shard is reduced by a reduce-scatter, and its gradients cannot be
  // fetched. Sum and average; whole gradients alone; over all ranks.
  bool sharded = false;
  // More that must be the same on all ranks: settings and their values.
  std::vector<std::pair<std::string, std::string>> compared = {};
  // Names of gradients that need no reduction because there is one rank: a step on several refuses the node.
  std::vector<std::string> of_one_rank = {};
  // Names of gradients that are reduced behind all others, in this order: ranks may make them at different
  // places of their backward pass. Names without a gradient do nothing.
  std::vector<std::string> last = {};
  // The ranks that reduce; on others, and in a set of one rank, an identity. Compiling a step throws
  // InvalidArgumentError where it has been removed.
  ProcessSet process_set = {};
};

/// What is to be combined over the ranks: whole gradients, and rows of others.
struct GroupReduceInputs {
  Outputs gradients;               // of fully known shapes
  std::vector<std::string> names;  // what messages call them, one each, the same on all ranks
  std::vector<IndexedSlices> slices = {};
  std::vector<std::string> slice_names = {};
};
/// The reduced gradients and slices, in the order in which they were given.
struct GroupReduced {
  Outputs gradients;
  std::vector<IndexedSlices> slices;
};

/// Each gradient reduced over all ranks, and of each list of slices all ranks' rows in the order of the
/// ranks; values ÷ R for an average. Rows that several ranks have are listed several times; but where all of
/// them are more bytes than the whole tensor, that is reduced, and each row that some rank has is listed
/// once. An index that is no row's: InvalidArgumentError when it is run. As group_allreduce in all else; in
/// addition throws InvalidArgumentError for slices of a tensor whose shape is not known, and for an op other
/// than sum and average where there are slices.
GroupReduced group_reduce(const Scope& s, const GroupReduceInputs& inputs,
                          const GroupAllReduceOptions& options = {});

/// Each gradient reduced over all ranks: one output for each, in their order. When a step is compiled the
/// node becomes buckets that are reduced while the rest of the step is computed; one rank: an identity.
/// names: what messages call the gradients, one each, the same on all ranks.
/// No gradients at all are legal: the ranks then still compare what they have.
/// Throws InvalidArgumentError if the counts differ, a limit is negative, a gradient's shape is not fully
/// known or `op` is not defined for its type.
Outputs group_allreduce(const Scope& s, const Outputs& gradients, const std::vector<std::string>& names,
                        const GroupAllReduceOptions& options = {});

/// x, of a floating type and a fully known shape, reduced over all ranks by sum or average, where the rest of
/// the step waits for it. Its gradient is reduced likewise. Every rank runs a step that has it, or none. One
/// rank: an identity. For other types, shapes, reductions and sets of ranks: allreduce in collective_ops.h.
Output scheduled_allreduce(const Scope& s, Output x, ReduceOp op = ReduceOp::average);

}  // namespace kolo
