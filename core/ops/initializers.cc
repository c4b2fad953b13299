#include <kolo/core/ops/initializers.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kolo {
namespace {

// The standard deviation that is left of 1 when a normal distribution is cut off at ±2.
constexpr double kTruncatedDeviation = 0.87962566103423978;

Output within(const Scope& s, DType dtype, Shape shape, double variance, std::int64_t seed) {
  const double limit = std::sqrt(3 * variance);
  return random_uniform(s, dtype, std::move(shape), -limit, limit, seed);
}

Output truncated(const Scope& s, DType dtype, Shape shape, double variance, std::int64_t seed) {
  return truncated_normal(s, dtype, std::move(shape), 0, std::sqrt(variance) / kTruncatedDeviation, seed);
}

// Weights without inputs have no elements; any finite variance will do.
double glorot_variance(const Shape& shape) {
  const Fans fans = fans_of(shape);
  return 2 / std::max(1.0, fans.in + fans.out);
}
double he_variance(const Shape& shape) { return 2 / std::max(1.0, fans_of(shape).in); }

}  // namespace

Fans fans_of(const Shape& shape) {
  const auto elements = static_cast<double>(shape.elements());
  if (shape.rank() == 0) return {1, 1};
  if (shape.rank() == 1) return {elements, elements};
  const auto first = static_cast<double>(shape.dim(0)), second = static_cast<double>(shape.dim(1));
  if (shape.rank() == 2) return {first, second};
  double window = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) window *= static_cast<double>(shape.dim(axis));
  return {second * window, first * window};
}

Output glorot_uniform(const Scope& s, DType dtype, Shape shape, std::int64_t seed) {
  const double variance = glorot_variance(shape);
  return within(s, dtype, std::move(shape), variance, seed);
}
Output glorot_normal(const Scope& s, DType dtype, Shape shape, std::int64_t seed) {
  const double variance = glorot_variance(shape);
  return truncated(s, dtype, std::move(shape), variance, seed);
}
Output he_uniform(const Scope& s, DType dtype, Shape shape, std::int64_t seed) {
  const double variance = he_variance(shape);
  return within(s, dtype, std::move(shape), variance, seed);
}
Output he_normal(const Scope& s, DType dtype, Shape shape, std::int64_t seed) {
  const double variance = he_variance(shape);
  return truncated(s, dtype, std::move(shape), variance, seed);
}

}  // namespace kolo
