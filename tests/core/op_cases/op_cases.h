// The ops that every device computes and every one is compared with the CPU in: what they are given, and how
// exact the result has to be. gpu_numerics runs them on a GPU, and tests on the CPU, on a virtual GPU and on
// one that is not there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo::op_cases {

using Build = std::function<Output(const Scope& s, const Outputs& x)>;

// sums: linear in each input with weights ≥ 0, so the same op over |x| in f64 gives each element's sum of
// magnitudes. near: by the largest element; norms: likewise, or by 1 where that is more, the size of what
// cancels in them. same: the CPU's f32, bit by bit; drawn: likewise, of the first run of an op that draws
// numbers.
enum class Judge { sums, near, norms, same, drawn };

struct Case {
  std::string name;
  Judge judge;
  std::vector<Shape> inputs;
  Build build;
  bool has_gradient = true;
};

/// large: sizes for a real GPU as well.
std::vector<Case> all_cases(bool large);

/// Parts of it.
void add_elementwise(std::vector<Case>& cases, bool large);
void add_moves(std::vector<Case>& cases);

inline Build unary(Output (*op)(const Scope&, Output)) {
  return [op](const Scope& s, const Outputs& x) { return op(s, x[0]); };
}
/// A number of x's type.
Output number_like(const Scope& s, Output x, double value);

}  // namespace kolo::op_cases
