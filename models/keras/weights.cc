#include <kolo/models/keras/weights.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/models/keras/names_internal.h>

namespace kolo::keras {
namespace {

// The standard deviation that is left of 1 when a normal distribution is cut off at ±2.
constexpr double kTruncatedDeviation = 0.87962566103423978;

Initializer initializer_of(const std::string& class_name, double first = 0, double second = 0) {
  Initializer made("zeros");
  made.class_name = class_name;
  made.first = first;
  made.second = second;
  return made;
}

const std::map<std::string, std::function<Initializer()>>& known_initializers() {
  using namespace initializers;
  static const std::map<std::string, std::function<Initializer()>> known = {
      {"ones", [] { return initializer_of("Ones"); }},
      {"constant", [] { return constant(0); }},
      {"identity", [] { return identity(); }},
      {"orthogonal", [] { return orthogonal(); }},
      {"uniform", [] { return initializers::random_uniform(); }},
      {"random_uniform", [] { return initializers::random_uniform(); }},
      {"normal", [] { return initializers::random_normal(); }},
      {"random_normal", [] { return initializers::random_normal(); }},
      {"truncated_normal", [] { return initializers::truncated_normal(); }},
      {"glorot_uniform", [] { return variance_scaling(1, "fan_avg", "uniform"); }},
      {"glorot_normal", [] { return variance_scaling(1, "fan_avg", "normal"); }},
      {"he_uniform", [] { return variance_scaling(2, "fan_in", "uniform"); }},
      {"he_normal", [] { return variance_scaling(2, "fan_in", "normal"); }},
      {"lecun_uniform", [] { return variance_scaling(1, "fan_in", "uniform"); }},
      {"lecun_normal", [] { return variance_scaling(1, "fan_in", "normal"); }}};
  return known;
}

double variance(const Initializer& of, const Fans& fans) {
  const double n = of.mode == "fan_in" ? fans.in : of.mode == "fan_out" ? fans.out : (fans.in + fans.out) / 2;
  return of.first / std::max(1.0, n);
}

// The last dimension against all others, as Keras sees a weight.
Output orthogonal_values(const Scope& s, DType dtype, const Shape& shape, double gain) {
  if (shape.rank() < 2)
    throw InvalidArgumentError("orthogonal: {} has fewer than two dimensions; an orthogonal start needs two",
                               shape);
  const std::int64_t cols = shape.dim(-1), rows = shape.elements() / std::max<std::int64_t>(cols, 1);
  const Shape tall{std::max(rows, cols), std::min(rows, cols)};
  Output q = orthogonalize(s, kolo::random_normal(s.named("normal"), dtype, tall));
  if (rows < cols) q = transpose(s, q);
  return mul(s, reshape(s, q, shape), fill(s, dtype, {}, gain));
}

Output identity_values(const Scope& s, DType dtype, const Shape& shape, double gain) {
  if (shape.rank() != 2 || shape.dim(0) != shape.dim(1))
    throw InvalidArgumentError(
        "Identity matrix initializer can only be used for 2D square matrices; {} is none", shape);
  Tensor eye = Tensor::zeros(DType::f32, shape);
  for (std::int64_t i = 0; i < shape.dim(0); ++i)
    eye.data<float>()[i * (shape.dim(0) + 1)] = static_cast<float>(gain);
  return cast(s, constant(s, eye), dtype);
}

}  // namespace

Initializer::Initializer(const std::string& name) {
  if (name == "zeros") {
    class_name = "Zeros";
    return;
  }
  const auto found = known_initializers().find(name);
  if (found == known_initializers().end()) {
    std::vector<std::string> names = detail::keys_of(known_initializers());
    names.push_back("zeros");
    throw InvalidArgumentError("{}", detail::unknown_text("initializer", name, names));
  }
  *this = found->second();
}

double Initializer::spread(const Fans& fans) const {
  if (class_name == "RandomUniform") return (second - first) / 2;
  if (class_name == "RandomNormal" || class_name == "TruncatedNormal") return second;
  if (class_name != "VarianceScaling") return 0;
  const double v = variance(*this, fans);
  return distribution == "uniform" ? std::sqrt(3 * v) : std::sqrt(v) / kTruncatedDeviation;
}

Output Initializer::values(const Scope& s, DType dtype, const Shape& shape, const Fans& fans) const {
  if (class_name == "Zeros") return zeros(s, dtype, shape);
  if (class_name == "Ones") return ones(s, dtype, shape);
  if (class_name == "Constant") return fill(s, dtype, shape, first);
  if (class_name == "RandomUniform") return kolo::random_uniform(s, dtype, shape, first, second);
  if (class_name == "RandomNormal") return kolo::random_normal(s, dtype, shape, first, second);
  if (class_name == "TruncatedNormal") return kolo::truncated_normal(s, dtype, shape, first, second);
  if (class_name == "Orthogonal") return orthogonal_values(s, dtype, shape, first);
  if (class_name == "Identity") return identity_values(s, dtype, shape, first);
  const double by = spread(fans);
  return distribution == "uniform" ? kolo::random_uniform(s, dtype, shape, -by, by)
                                   : kolo::truncated_normal(s, dtype, shape, 0, by);
}

namespace initializers {
Initializer constant(double value) { return initializer_of("Constant", value); }
Initializer random_uniform(double low, double high) { return initializer_of("RandomUniform", low, high); }
Initializer random_normal(double mean, double stddev) { return initializer_of("RandomNormal", mean, stddev); }
Initializer truncated_normal(double mean, double stddev) {
  return initializer_of("TruncatedNormal", mean, stddev);
}
Initializer orthogonal(double gain) { return initializer_of("Orthogonal", gain); }
Initializer identity(double gain) { return initializer_of("Identity", gain); }
Initializer variance_scaling(double scale, const std::string& mode, const std::string& distribution) {
  Initializer made = initializer_of("VarianceScaling", scale);
  made.mode = mode;
  made.distribution = distribution;
  return made;
}
}  // namespace initializers

Regularizer::Regularizer(const std::string& name) {
  if (name.empty()) return;
  const std::vector<std::string> known = {"l1", "l2", "l1_l2"};
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw InvalidArgumentError("{}", detail::unknown_text("regularizer", name, known));
  if (name != "l2") l1 = 0.01;
  if (name != "l1") l2 = 0.01;
}

Output Regularizer::penalty(const Scope& s, Output w) const {
  Outputs parts;
  if (l1 != 0) parts.push_back(mul(s, reduce_sum(s, abs(s, w)), fill(s, w.dtype(), {}, l1)));
  if (l2 != 0) parts.push_back(mul(s, reduce_sum(s, square(s, w)), fill(s, w.dtype(), {}, l2)));
  return add_n(s, parts);
}

Regularizer l1(double c) { return l1_l2(c, 0); }
Regularizer l2(double c) { return l1_l2(0, c); }
Regularizer l1_l2(double l1, double l2) {
  Regularizer made;
  made.l1 = l1;
  made.l2 = l2;
  return made;
}

Constraint::Constraint(const std::string& name) : kind(name) {
  const std::vector<std::string> known = {"max_norm", "non_neg", "unit_norm"};
  if (!name.empty() && std::find(known.begin(), known.end(), name) == known.end())
    throw InvalidArgumentError("{}", detail::unknown_text("constraint", name, known));
}

Output Constraint::constrained(const Scope& s, Output w, const std::vector<std::int64_t>& axes) const {
  if (kind == "non_neg") return relu(s, w);
  const Output norm = sqrt(s, reduce_sum(s, square(s, w), {.axes = axes, .keep_dims = true}));
  const Output above = add(s, norm, fill(s, w.dtype(), {}, 1e-7));
  if (kind == "unit_norm") return div(s, w, above);
  return mul(s, w, div(s, minimum(s, norm, fill(s, w.dtype(), {}, max_value)), above));
}

Constraint max_norm(double c) {
  Constraint made("max_norm");
  made.max_value = c;
  return made;
}
Constraint non_neg() { return Constraint("non_neg"); }
Constraint unit_norm() { return Constraint("unit_norm"); }

}  // namespace kolo::keras
