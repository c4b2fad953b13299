// Parts of a step that happen only where, or as long as, a value of the step says so, and order without data.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

// Branches and order.

/// Makes the ops of a branch in the scope that it is given, and returns what the branch computes. Nodes that
/// it makes in another scope are not part of the branch and run in any case.
using Branch = std::function<Outputs(const Scope&)>;
using BranchEffect = std::function<Operation(const Scope&)>;

/// The outputs of `if_true` where `pred` (bool, a scalar) is true, else those of `if_false`. Only the ops of
/// the branch that is taken run; what they use from outside runs in any case. Both branches give as many
/// outputs, of the same types; where their shapes differ, the result's is unknown there. Differentiable; an x
/// that only the other branch uses has a gradient of zeros. A value of a branch that was not taken cannot be
/// fetched: the run ends with InvalidArgumentError `Retval[<i>] does not have value`. Throws
/// InvalidArgumentError if pred or the branches' outputs are not as told.
Outputs cond(const Scope& s, Output pred, const Branch& if_true, const Branch& if_false);
/// The same for effects: an operation that is done when that of the branch taken is.
Operation cond(const Scope& s, Output pred, const BranchEffect& if_true, const BranchEffect& if_false);

/// The outputs of the first case whose condition is true, else of `otherwise`. exclusive: more than one true
/// condition is an error of the run, InvalidArgumentError `more than 1 conditions evaluated as True`.
Outputs case_of(const Scope& s, const std::vector<std::pair<Output, Branch>>& cases, const Branch& otherwise,
                bool exclusive = false);

/// Each of `values`, but none before all of them, and all of `before`, are there.
Outputs tuple(const Scope& s, const Outputs& values, const std::vector<Operation>& before = {});
/// `value`, not before all of `before` are done.
Output with_dependencies(const Scope& s, const std::vector<Operation>& before, Output value);

// Repetition as long as a value of the step says so.

/// Limits of a while_loop.
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
