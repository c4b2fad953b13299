#include <kolo/core/ops/random.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/inference_form.h>

namespace kolo {
namespace {

void check(ShapeContext& c, const char* op) {
  const DType dtype = c.attr<DType>("dtype");
  if (dtype != DType::f32 && dtype != DType::f64)
    throw InvalidArgumentError("{} makes f32 or f64; {} was asked for", op, dtype);
  const Shape shape = c.attr<Shape>("shape");
  if (!shape.is_fully_known()) throw InvalidArgumentError("{}: the shape {} must be fully known", op, shape);
  c.set_output(0, shape);
}

OpSchema random_op(const char* name) {
  return OpSchema(name)
      .required_attr("dtype", DType::f32)
      .required_attr("shape", Shape())
      .attr("seed", 0)
      .output("y", "dtype")
      .stateful()
      .no_gradient();
}

void normal_shape(ShapeContext& c) {
  check(c, "a random normal");
  const double mean = c.attr<double>("mean"), stddev = c.attr<double>("stddev");
  if (!std::isfinite(mean) || !std::isfinite(stddev) || stddev < 0)
    throw InvalidArgumentError(
        "a random normal of mean {} and standard deviation {}: both must be finite, the latter not negative",
        mean, stddev);
}

const RegisterOp random_ops[] = {
    random_op("RandomUniform").attr("low", 0.0).attr("high", 1.0).shape([](ShapeContext& c) {
      check(c, "a random uniform");
      const double low = c.attr<double>("low"), high = c.attr<double>("high");
      if (!(low < high) || !std::isfinite(high - low))
        throw InvalidArgumentError(
            "a random uniform in [{}, {}): the first must be less than the second, both finite", low, high);
    }),
    random_op("RandomNormal").attr("mean", 0.0).attr("stddev", 1.0).shape(normal_shape),
    random_op("TruncatedNormal").attr("mean", 0.0).attr("stddev", 1.0).shape(normal_shape),
};

void check_noise(double stddev) {
  if (!std::isfinite(stddev) || stddev < 0)
    throw InvalidArgumentError("gaussian noise of standard deviation {}; it must be finite, not negative",
                               stddev);
}

const RegisterOp gaussian_noise_op(OpSchema("GaussianNoise")
                                       .input("x", {DType::f32, DType::f64})
                                       .required_attr("stddev", 0.0)
                                       .attr("seed", 0)
                                       .output("y")
                                       .in_place(0)
                                       .shape([](ShapeContext& c) {
                                         check_noise(c.attr<double>("stddev"));
                                         c.set_output(0, c.input(0));
                                       })
                                       .gradient([](Scope&, const Node&, Output dy) { return Outputs{dy}; })
                                       .stateful());

const RegisterInferenceForm noise_form("GaussianNoise", [](const Scope&, const Node&, const Outputs& in) {
  return Outputs{in[0]};
});

Output normal(const Scope& s, const char* op, DType dtype, Shape shape, double mean, double stddev,
              std::int64_t seed) {
  return s.add(
      op, {},
      {{"dtype", dtype}, {"shape", std::move(shape)}, {"seed", seed}, {"mean", mean}, {"stddev", stddev}});
}

}  // namespace

Output random_uniform(const Scope& s, DType dtype, Shape shape, double low, double high, std::int64_t seed) {
  return s.add("RandomUniform", {},
               {{"dtype", dtype}, {"shape", std::move(shape)}, {"seed", seed}, {"low", low}, {"high", high}});
}
Output random_normal(const Scope& s, DType dtype, Shape shape, double mean, double stddev,
                     std::int64_t seed) {
  return normal(s, "RandomNormal", dtype, std::move(shape), mean, stddev, seed);
}
Output truncated_normal(const Scope& s, DType dtype, Shape shape, double mean, double stddev,
                        std::int64_t seed) {
  return normal(s, "TruncatedNormal", dtype, std::move(shape), mean, stddev, seed);
}

Output gaussian_noise(const Scope& s, Output x, double stddev, std::int64_t seed) {
  check_noise(stddev);
  if (stddev == 0) return x;
  return s.add("GaussianNoise", {x}, {{"stddev", stddev}, {"seed", seed}});
}

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
