// A transformer that says what comes next: Vaswani et al., "Attention is all you need", NIPS 2017, as decoder
// alone with normalization before each layer: Radford et al., "Language models are unsupervised multitask
// learners", OpenAI 2019.
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo::models {

/// Sizes of gpt.
struct GptOptions {
  std::int64_t vocabulary = 65;  // characters of Shakespeare's works
  std::int64_t layers = 4;
  std::int64_t width = 256;  // of a token's vector, a multiple of heads
  std::int64_t heads = 4;    // of each layer's attention
  bool tied = false;         // the last matrix is that of the tokens' vectors, transposed
};

/// tokens [N,T], i32 below vocabulary → logits [N·T, vocabulary] for the token behind each, from it and those
/// before it in its row. Vectors of tokens and of T places; blocks of attention with `heads` heads and of a
/// dense layer of 4·width with GELU, each behind a layer norm and added to what came in; a layer norm; dense
/// without a bias. Matrices and vectors start as normal numbers of standard deviation 0.02. T must be known.
/// 3,225,600 parameters for T = 128; V·D + T·D + L·(12·D² + 13·D) + 2·D of vocabulary V, width D and L
/// layers, and V·D more unless tied: 124,439,808, GPT-2's, for 50257, 768 and 12 with T = 1024, tied. Throws
/// InvalidArgumentError for options that cannot be.
Output gpt(Scope& s, Output tokens, const GptOptions& options = {});

}  // namespace kolo::models
