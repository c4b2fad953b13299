#include <kolo/optimizer/hyperparameter.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/cast.h>

namespace kolo {

Hyperparameter::Hyperparameter(Output value) : value_(value) {
  if (!value || !is_floating(value.dtype()) || !value.shape().is_compatible_with(Shape()))
    throw InvalidArgumentError("a number of an optimizer must be a floating point scalar; {} is {} {}",
                               value ? value.name() : "the empty output",
                               value ? name(value.dtype()) : "nothing",
                               value ? value.shape() : Shape::unknown_rank());
}

Output Hyperparameter::scalar(const Scope& s, DType dtype, const std::string& name) const {
  if (const Output* output = std::get_if<Output>(&value_))
    return output->dtype() == dtype ? *output : cast(s.named(name), *output, dtype);
  return fill(s.named(name), dtype, {}, std::get<double>(value_));
}

}  // namespace kolo
