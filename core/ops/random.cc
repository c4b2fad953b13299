#include <kolo/core/ops/random.h>

#include <cmath>
#include <utility>

#include <kolo/core/base/error.h>

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

}  // namespace kolo
