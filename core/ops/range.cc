#include <kolo/core/ops/range.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

bool is_exact_whole(double value) { return value == std::trunc(value) && std::abs(value) < 0x1p53; }

void range_shape(ShapeContext& c) {
  const DType dtype = c.attr<DType>("dtype");
  const double start = c.attr<double>("start"), limit = c.attr<double>("limit"),
               delta = c.attr<double>("delta");
  if (dtype != DType::f32 && dtype != DType::f64 && dtype != DType::i32 && dtype != DType::i64)
    throw InvalidArgumentError("range makes f32, f64, i32 or i64; {} was asked for", dtype);
  if (!std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(delta) || delta == 0)
    throw InvalidArgumentError("range from {} to {} by {}: all must be finite, and the last not 0", start,
                               limit, delta);
  if (!is_floating(dtype))
    for (const double value : {start, limit, delta})
      if (!is_exact_whole(value))
        throw InvalidArgumentError("range of {}: {} is not a whole number below 2^53", dtype, value);
  if (dtype == DType::i32)
    for (const double value : {start, limit})
      if (value < std::numeric_limits<std::int32_t>::min() ||
          value > std::numeric_limits<std::int32_t>::max())
        throw InvalidArgumentError("range of {}: {} does not fit in 32 bits", dtype, value);
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  if (!(count < 0x1p53))
    throw InvalidArgumentError("range from {} to {} by {} is too long", start, limit, delta);
  c.set_output(0, {static_cast<std::int64_t>(count)});
}

const RegisterOp range_op(OpSchema("Range")
                              .required_attr("dtype", DType::f32)
                              .required_attr("start", 0.0)
                              .required_attr("limit", 0.0)
                              .required_attr("delta", 1.0)
                              .output("y", "dtype")
                              .shape(range_shape)
                              .no_gradient());

}  // namespace

Output range(const Scope& s, DType dtype, double start, double limit, double delta) {
  return s.add("Range", {}, {{"dtype", dtype}, {"start", start}, {"limit", limit}, {"delta", delta}});
}

}  // namespace kolo
