// Attention: each place of a sequence becomes a mean of what stands at the places that it looks at.
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// Heads and mask of self_attention.
struct SelfAttentionOptions {
  std::int64_t heads = 1;  // ≥ 1; the width is a multiple of it
  bool causal = false;     // a place looks at itself and at those before it only
};

/// For each sequence and head: softmax(q · kᵀ / √size) · v along the places, by scaled dot products (Vaswani
/// et al., arXiv:1706.03762). qkv [N,T,3·width], f32 or f64, holds the queries, keys and values of each place
/// one behind the other, each of `heads` parts of size = width / heads; the result is [N,T,width]. NaN in a
/// place reaches all that look at it. Throws InvalidArgumentError for other shapes, or fewer than 1 head.
/// Memory: one number for each sequence, head and place beside the result; scores of all pairs of places are
/// never stored, but made anew for the gradient.
Output self_attention(const Scope& s, Output qkv, SelfAttentionOptions options);

}  // namespace kolo
