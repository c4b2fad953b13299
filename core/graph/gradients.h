// Reverse-mode automatic differentiation over the graph.
#pragma once

#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/graph/scope.h>

namespace kolo {

/// How gradients() walks the graph.
struct GradientsOptions {
  Outputs stop_gradients = {};         // taken as constants: nothing flows back beyond them
  bool zeros_where_unreached = false;  // zeros of x's shape instead of an empty output
  bool colocate_with_ops = false;      // each gradient node is placed with the node that it differentiates
};

/// d(sum of all ys)/dx for each x of `xs`: one output with x's shape each, or an empty one where no y depends
/// on x, and for an x that is not floating point. grad_ys: one for each y (empty: ones), or none at all.
/// Gradients of a tensor that is used k times are added by one AddN. Where all of them are slices
/// (indexed_slices.h) the result is slices too: their rows one after the other, none summed. New nodes are
/// named under "gradients". Order: the nodes are made from the last op back to the first. Throws
/// InvalidArgumentError if an x or y is empty, a y is not floating point or a grad_y does not fit its y; the
/// graph is then unchanged. Throws NotFoundError `No gradient defined for operation '<op>' (op type: <T>)`;
/// what was made until then stays in the graph.
Outputs gradients(Scope& s, const Outputs& ys, const Outputs& xs, const Outputs& grad_ys = {},
                  const GradientsOptions& options = {});

}  // namespace kolo
