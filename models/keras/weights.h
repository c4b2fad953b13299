// What a layer's weights start from, what is added to the loss for their size, and what holds them in bounds.
#pragma once

#include <functional>
#include <string>

#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/random.h>

namespace kolo::keras {

/// A value: a name of Keras' list, or one of the functions below. Names: zeros ones constant identity
/// orthogonal uniform random_uniform normal random_normal truncated_normal glorot_uniform glorot_normal
/// he_uniform he_normal lecun_uniform lecun_normal. Converting throws InvalidArgumentError `Unknown
/// initializer: <name>`, with the nearest known one.
class Initializer {
 public:
  Initializer(const char* name) : Initializer(std::string(name)) {}
  Initializer(const std::string& name);

  /// First values of this shape. Throws InvalidArgumentError for a shape that it cannot fill.
  Output values(const Scope& s, DType dtype, const Shape& shape, const Fans& fans) const;

  // As Keras writes it: VarianceScaling has scale, mode and distribution, the others up to two numbers.
  std::string class_name;
  double first = 0;   // value, minval, mean, scale, gain
  double second = 0;  // maxval, stddev
  std::string mode = {}, distribution = {};

  /// The element of a uniform distribution is at most this far from its middle; of a normal one, its
  /// deviation before cutting. 0 for all others.
  double spread(const Fans& fans) const;
};

namespace initializers {
/// Keras' initializers of these names: one value; numbers of a distribution; an orthonormal basis, or the
/// unit matrix, times `gain`.
Initializer constant(double value);
Initializer random_uniform(double low = -0.05, double high = 0.05);
Initializer random_normal(double mean = 0, double stddev = 0.05);
Initializer truncated_normal(double mean = 0, double stddev = 0.05);
Initializer orthogonal(double gain = 1);
Initializer identity(double gain = 1);
/// mode: fan_in, fan_out, fan_avg; distribution: uniform, normal.
Initializer variance_scaling(double scale, const std::string& mode, const std::string& distribution);
}  // namespace initializers

/// l1 · Σ|w| + l2 · Σw². Names: l1, l2, l1_l2, with .01; "" is none. Throws as Initializer, `Unknown
/// regularizer`.
struct Regularizer {
  Regularizer() = default;
  Regularizer(const char* name) : Regularizer(std::string(name)) {}
  Regularizer(const std::string& name);
  explicit operator bool() const { return l1 != 0 || l2 != 0; }
  /// A scalar.
  Output penalty(const Scope& s, Output w) const;

  double l1 = 0;
  double l2 = 0;
};
/// With one of the two factors, or with both.
Regularizer l1(double c = 0.01);
Regularizer l2(double c = 0.01);
Regularizer l1_l2(double l1 = 0.01, double l2 = 0.01);

/// Applied after each update. Names: max_norm, non_neg, unit_norm; "" is none. Throws as Initializer,
/// `Unknown constraint`.
struct Constraint {
  Constraint() = default;
  Constraint(const char* name) : Constraint(std::string(name)) {}
  Constraint(const std::string& name);
  explicit operator bool() const { return !kind.empty(); }
  /// axes: those along which norms are taken.
  Output constrained(const Scope& s, Output w, const std::vector<std::int64_t>& axes) const;

  std::string kind = {};
  double max_value = 2;
};
/// w · min(n, c) / (n + 1e-7), n being the norm along all axes but the output's.
Constraint max_norm(double c = 2);
/// max(w, 0).
Constraint non_neg();
/// w / (n + 1e-7).
Constraint unit_norm();

}  // namespace kolo::keras
