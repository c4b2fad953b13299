// Allreduce along a binomial tree, for small messages.
#pragma once

#include <memory>
#include <vector>

#include <kolo/collectives/algorithms/allreduce_registry.h>

namespace kolo {

/// Where a rank stands in the binomial tree whose root is rank 0.
struct TreePlace {
  int parent = -1;            // -1: the root
  std::vector<int> children;  // nearest first, which is the smallest subtree
};
TreePlace binomial_tree(int rank, int ranks);

/// Reduces `buffer` in place: up the tree to rank 0, and down again. A rank adds its children's partial sums
/// to its own in f32 where the type has 16 bits, and rounds once: at most ⌈log₂ n⌉ roundings, and one where
/// all ranks are the root's children (n ≤ 3). Throws InvalidArgumentError where `op` is not defined for the
/// type.
/// Cost: 2⌈log₂ n⌉ messages after each other, 2(n−1) in all; memory for the buffer once per child, and for
/// 16-bit types twice more in f32.
std::shared_ptr<Collective> tree_allreduce(const AlgorithmContext& context, const TypedBuffer& buffer,
                                           ReduceOp op);

}  // namespace kolo
