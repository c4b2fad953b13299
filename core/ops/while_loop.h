// Repetition as long as a value of the step says so.
#pragma once

#include <cstdint>
#include <functional>

#include <kolo/core/graph/scope.h>

namespace kolo {

struct WhileOptions {
  std::int64_t max_iterations =
      -1;  // the loop ends after this many whatever the condition says; −1: no limit
};

/// Both get the scope in which to make their ops and the values that the variables have at the start of an
/// iteration.
using LoopCondition = std::function<Output(const Scope&, const Outputs& variables)>;
using LoopBody = std::function<Outputs(const Scope&, const Outputs& variables)>;

/// The loop's variables, `initial` at first and then what `body` makes of them, once for each time that
/// `condition` (bool, a scalar), asked first, is true: perhaps never. What condition and body use from
/// outside is computed once, before the loop; the ops that they make run in each iteration, one iteration
/// after the other. Types and shapes of the variables do not change. Variables of the graph may be read and
/// updated in the body; other ops of the step that use what the loop updates need a control dependency.
/// Differentiable in `initial` and in what is used from outside: the backward pass keeps the variables of
/// every iteration and computes the rest of each iteration again, so the body must then be without effects
/// and random numbers (UnimplementedError where the gradient is asked for). Throws InvalidArgumentError if
/// types, shapes or numbers of tensors do not fit.
Outputs while_loop(const Scope& s, const LoopCondition& condition, const LoopBody& body,
                   const Outputs& initial, const WhileOptions& options = {});

}  // namespace kolo
