#include <kolo/collectives/reduce/reduction.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo {
namespace {

constexpr std::array<const char*, 6> kReduceOpNames = {"sum", "average", "min", "max", "product", "adasum"};

}  // namespace

const char* name(ReduceOp op) { return kReduceOpNames[static_cast<std::size_t>(op)]; }

ReduceOp reduce_op_from_name(std::string_view text) {
  for (std::size_t i = 0; i < kReduceOpNames.size(); ++i)
    if (text == kReduceOpNames[i]) return static_cast<ReduceOp>(i);
  throw InvalidArgumentError(
      "\"{}\" is not a reduction; there are sum, average, min, max, product and adasum{}", text,
      did_you_mean(text, std::vector<std::string>(kReduceOpNames.begin(), kReduceOpNames.end())));
}

void check_reducible(ReduceOp op, DType dtype) {
  if (dtype == DType::string)
    throw InvalidArgumentError("{} is not defined for string; only numbers and booleans are reduced",
                               name(op));
  if ((op == ReduceOp::average || op == ReduceOp::adasum) && !is_floating(dtype))
    throw InvalidArgumentError("{} is not defined for {}; use sum, or cast to a floating type", name(op),
                               numpy_name(dtype));
}

void check_scales(const Reduction& reduction) {
  if (std::isnan(reduction.prescale) || std::isnan(reduction.postscale))
    throw InvalidArgumentError("scale factors must be numbers; prescale is {} and postscale is {}",
                               reduction.prescale, reduction.postscale);
}

void check_reducible(const Reduction& reduction, DType dtype) {
  check_reducible(reduction.op, dtype);
  check_scales(reduction);
  if (reduction.is_scaled() && !is_floating(dtype))
    throw InvalidArgumentError("scale factors need a floating dtype; this is {}", numpy_name(dtype));
}

}  // namespace kolo
