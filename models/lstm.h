// A recurrent network that says what comes next: Hochreiter, Schmidhuber, "Long short-term memory", Neural
// Computation 9 (1997), with forget gates (Gers, Schmidhuber, Cummins, 2000) as PyTorch's torch.nn.LSTM has
// them, on characters as in Karpathy's char-rnn (2015).
#pragma once

#include <cstdint>
#include <string>

#include <kolo/core/graph/scope.h>

namespace kolo::models {

/// A layer: x [T·N, inputs], all sequences' first steps before their second ones, → h [T·N, units], from h
/// and c of 0. Of z = x · w + h · u + b the four quarters are the input gate, the forget gate, the new
/// content and the output gate: c = sigmoid(f) · c + sigmoid(i) · tanh(g), h = sigmoid(o) · tanh(c).
/// Variables w [inputs, 4·units] and u [units, 4·units] by Glorot's uniform rule, b from 0, from 1 for the
/// forget gate (Jozefowicz et al., ICML 2015): w and u are torch.nn.LSTM's weight_ih and weight_hh
/// transposed, b the sum of its two. The steps stand in the graph one after the other. Throws
/// InvalidArgumentError unless x is a matrix of known shape but for its rows, which T divides where they are
/// known.
Output lstm_layer(const Scope& s, Output x, std::int64_t steps, std::int64_t units, const std::string& name);

/// Sizes of lstm.
struct LstmOptions {
  std::int64_t vocabulary = 65;  // characters of Shakespeare's works
  std::int64_t layers = 2;
  std::int64_t width = 256;  // of a token's vector and of each layer
};

/// tokens [N,T], i32 below vocabulary → logits [N·T, vocabulary] for the token behind each: vectors of
/// tokens, `layers` LSTM layers, dense. T must be known. V·D + L·(8·D² + 4·D) + D·V + V parameters: 1,083,969
/// for the options as they are. Throws InvalidArgumentError for options that cannot be.
Output lstm(Scope& s, Output tokens, const LstmOptions& options = {});

}  // namespace kolo::models
