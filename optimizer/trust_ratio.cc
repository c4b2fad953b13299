#include <kolo/optimizer/trust_ratio.h>

#include <kolo/collectives/graph/group_ops.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>

namespace kolo::detail {

bool is_part(const Variable& variable) { return whole_variable(variable) != variable; }

bool adapts(const Variable& variable) { return whole_variable(variable).shape().rank() > 1; }

Output trust_ratio(const Scope& s, Output a, Output b) {
  const Output zero = zeros_like(s, a);
  const Output both = logical_and(s, greater(s, a, zero), greater(s, b, zero));
  return select(s, both, div(s, a, b), ones_like(s, a));
}

Outputs norms_over_ranks(const Scope& s, const Outputs& parts, const std::vector<std::string>& names) {
  if (parts.empty()) return {};
  const Scope scope = s.name_scope("norms");
  Outputs squares;
  for (const Output& part : parts)
    squares.push_back(square(scope, cast(scope, global_norm(scope, {part}), DType::f64)));
  Outputs norms = group_allreduce(scope, squares, names, {.op = ReduceOp::sum});
  for (std::size_t i = 0; i < parts.size(); ++i)
    norms[i] = cast(scope, sqrt(scope, norms[i]), parts[i].dtype());
  return norms;
}

}  // namespace kolo::detail
