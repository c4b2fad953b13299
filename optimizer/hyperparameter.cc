#include <kolo/optimizer/hyperparameter.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>

namespace kolo {

Hyperparameter::Hyperparameter(Output value) : value_(value) {
  if (!value || !is_floating(value.dtype()) || !value.shape().is_compatible_with(Shape()))
    throw InvalidArgumentError("a number of an optimizer must be a floating point scalar; {} is {} {}",
                               value ? value.name() : "the empty output",
                               value ? name(value.dtype()) : "nothing",
                               value ? value.shape() : Shape::unknown_rank());
}

std::optional<double> Hyperparameter::number() const {
  const double* number = std::get_if<double>(&value_);
  return number == nullptr ? std::nullopt : std::optional<double>(*number);
}

Output Hyperparameter::in_graph(const Scope& s, DType dtype, const std::string& name) const {
  const Output* output = std::get_if<Output>(&value_);
  return output != nullptr ? *output : scalar(s, dtype, name);
}

Output Hyperparameter::scalar(const Scope& s, DType dtype, const std::string& name) const {
  if (const Output* output = std::get_if<Output>(&value_))
    return output->dtype() == dtype ? *output : cast(s.named(name), *output, dtype);
  const double number = std::get<double>(value_);
  // Constants cost a step nothing; the other types are rare.
  if (dtype == DType::f32) return constant(s.named(name), Tensor::scalar(static_cast<float>(number)));
  if (dtype == DType::f64) return constant(s.named(name), Tensor::scalar(number));
  return fill(s.named(name), dtype, {}, number);
}

}  // namespace kolo
