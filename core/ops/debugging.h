// Looking into a running graph: values on stderr, and conditions that must hold.
#pragma once

#include <cstdint>
#include <string>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// How much `print` writes, and when.
struct PrintOptions {
  std::string message = {};    // in front of the values
  std::int64_t first_n = -1;   // prints this many times at most; −1: always
  std::int64_t summarize = 3;  // elements of each tensor; −1: all
};

/// x itself; whenever it is computed, writes `message[1 2 3...][0.5]` to stderr, a bracket for each of
/// `data`, which may be of any types. Gradients flow to x alone.
Output print(const Scope& s, Output x, const Outputs& data, PrintOptions options = {});

/// Throws InvalidArgumentError `assertion failed: [1 2 3...] [0.5]`, with the first `summarize` elements of
/// each of `data`, when it runs and `condition`, a bool scalar, is false. Others wait for it by
/// control_dependencies.
Operation assert_op(const Scope& s, Output condition, const Outputs& data, std::int64_t summarize = 3);

/// x itself (f32, f64). Throws InvalidArgumentError `<message> : Tensor had NaN values` (or `Inf`, or `Inf
/// and NaN`) when it runs and x has such elements. The gradient is checked likewise.
Output check_numerics(const Scope& s, Output x, const std::string& message);

}  // namespace kolo
