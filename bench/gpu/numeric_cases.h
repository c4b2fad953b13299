// What gpu_numerics compares: ops, the shapes they are given, and how exact the result has to be.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo::bench {

using Build = std::function<Output(const Scope& s, const Outputs& x)>;

// sums: linear in each input with weights ≥ 0, so the same op over |x| in f64 gives each element's sum of
// magnitudes. near: by the largest element; norms: likewise, of sums that cancel each other. same: the CPU's
// f32, bit by bit.
enum class Judge { sums, near, norms, same };

struct Case {
  std::string name;
  Judge judge;
  std::vector<Shape> inputs;
  Build build;
  bool has_gradient = true;
};

/// large: sizes for a real GPU as well.
std::vector<Case> numeric_cases(bool large);

}  // namespace kolo::bench
