// Adaptive summation: adds what is orthogonal, averages what is parallel.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <kolo/collectives/algorithms/allreduce_registry.h>

namespace kolo {

/// Combines `buffer` in place with Adasum (Maleki et al., "Scaling distributed training with adaptive
/// summation", MLSys 2021): of two vectors (1 − a·b / 2|a|²) a + (1 − a·b / 2|b|²) b, where a zero vector's
/// coefficient is 1; ranks at distance 1, then 2, 4, … by recursive halving. Where the number of ranks n is
/// not a power of two the ranks from the largest one below it, p, on first fold into rank − p by the same
/// formula. tensor_elements: the tensors that the buffer consists of, one behind the other, each with
/// products of its own; empty: one tensor. Products are in f64 over the whole tensor. All ranks hold the same
/// bits. Throws InvalidArgumentError for types that are not floating, and where the tensors do not fill the
/// buffer. Cost per rank: what halving–doubling costs, and log₂² p / 2 messages of three numbers for each
/// tensor.
std::shared_ptr<Collective> adasum_allreduce(const AlgorithmContext& context, const TypedBuffer& buffer,
                                             std::span<const std::int64_t> tensor_elements = {});

/// The average inside each node, Adasum across the nodes. contributes: given on all ranks or on none; the
/// elements of a rank with false are zeros, and its node averages over those with true, which it counts
/// first: another log₂ of its ranks messages.
std::shared_ptr<Collective> hierarchical_adasum(const AlgorithmContext& context, const TypedBuffer& buffer,
                                                std::span<const std::int64_t> tensor_elements = {},
                                                std::optional<bool> contributes = std::nullopt);

}  // namespace kolo
