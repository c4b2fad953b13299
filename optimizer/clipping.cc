#include <kolo/optimizer/clipping.h>

#include <cmath>
#include <limits>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>

namespace kolo {
namespace {

// What a gradient's elements are: all of it, or the values of slices.
Output values_of(const Output& gradient) {
  const auto slices = indexed_slices(gradient);
  return slices ? slices->values : gradient;
}

Output with_values(const Scope& s, const Output& gradient, Output values) {
  auto slices = indexed_slices(gradient);
  if (!slices) return values;
  slices->values = values;
  return to_dense(s, *slices);
}

void check_norm(const char* function, const Hyperparameter& clip_norm) {
  if (const auto number = clip_norm.number(); number && !(*number > 0))
    throw InvalidArgumentError("{}: clip_norm is {}; it must be positive", function, *number);
}

Output number(const Scope& s, DType dtype, double value, const char* name) {
  return Hyperparameter(value).scalar(s, dtype, name);
}

}  // namespace

Output clip_by_norm(const Scope& s, Output gradient, Hyperparameter clip_norm) {
  check_norm("clip_by_norm", clip_norm);
  const Scope scope = s.name_scope(s.wished_name("clip_by_norm"));
  const Output values = values_of(gradient);
  const Output limit = clip_norm.scalar(scope, values.dtype(), "clip_norm");
  const Output longer = maximum(scope, global_norm(scope, {values}), limit);
  return with_values(scope, gradient, div(scope, mul(scope, values, limit), longer));
}

ClippedGradients clip_by_global_norm(const Scope& s, const Outputs& gradients, Hyperparameter clip_norm,
                                     Output use_norm) {
  check_norm("clip_by_global_norm", clip_norm);
  const Scope scope = s.name_scope(s.wished_name("clip_by_global_norm"));
  Outputs present;
  for (const Output& gradient : gradients)
    if (gradient) present.push_back(values_of(gradient));
  ClippedGradients clipped = {.gradients = gradients, .norm = use_norm};
  if (present.empty()) {
    if (!use_norm) clipped.norm = number(scope, DType::f32, 0, "norm");
    return clipped;
  }
  const DType dtype = present[0].dtype();
  if (!use_norm) clipped.norm = global_norm(scope.named("norm"), present);
  const Output norm = cast(scope, clipped.norm, dtype);
  const Output limit = clip_norm.scalar(scope, dtype, "clip_norm"), one = number(scope, dtype, 1, "one");
  const Output factor = mul(scope, limit, minimum(scope, div(scope, one, norm), div(scope, one, limit)));
  // false for a NaN too
  const Output finite =
      less(scope, norm, number(scope, dtype, std::numeric_limits<double>::infinity(), "infinity"));
  const Output scale =
      select(scope.named("scale"), finite, factor, number(scope, dtype, std::nan(""), "nan"));
  for (Output& gradient : clipped.gradients)
    if (gradient) gradient = with_values(scope, gradient, mul(scope, values_of(gradient), scale));
  return clipped;
}

std::vector<GradientPair> clip_by_global_norm(const Scope& s, std::span<const GradientPair> gradients,
                                              Hyperparameter clip_norm) {
  Outputs outputs;
  for (const GradientPair& pair : gradients) outputs.push_back(pair.gradient);
  const ClippedGradients clipped = clip_by_global_norm(s, outputs, clip_norm);
  std::vector<GradientPair> pairs;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    pairs.push_back({clipped.gradients[i], gradients[i].variable});
  return pairs;
}

}  // namespace kolo
