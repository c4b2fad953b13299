#include <kolo/optimizer/cast_compression.h>

#include <fmt/format.h>

#include <kolo/core/ops/debugging.h>
#include <kolo/core/ops/math.h>

namespace kolo::detail {

bool CastCompression::casts(const Output& gradient) const {
  return gradient.dtype() == DType::f32 || gradient.dtype() == DType::f64;
}

// An element that is too large on one rank is infinite, or NaN, after the sum on all ranks: there it is found
// by all alike, and with it a sum that is too large.
Outputs CastCompression::reduce(const Scope& s, std::span<const GradientPair> local,
                                GradientReducer& reducer) const {
  const Scope scope = s.name_scope(name_);
  Outputs values;
  std::vector<std::string> names;
  for (const GradientPair& pair : local) {
    values.push_back(casts(pair.gradient) ? cast(scope, pair.gradient, wire_) : pair.gradient);
    names.push_back(pair.variable.name());
  }
  Outputs reduced = reducer.reduce(s, values, names);
  for (std::size_t i = 0; i < local.size(); ++i) {
    const GradientPair& pair = local[i];
    if (!casts(pair.gradient)) continue;
    reduced[i] = cast(scope, reduced[i], pair.gradient.dtype());
    if (!reducer.tolerates_overflow())
      reduced[i] = check_numerics(
          scope, reduced[i],
          fmt::format("the gradient of \"{}\" is not finite after {} compression, in which it travels as {}",
                      pair.variable.name(), name_, numpy_name(wire_)));
  }
  return reduced;
}

}  // namespace kolo::detail
