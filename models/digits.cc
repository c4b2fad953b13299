#include <kolo/models/data.h>

#include <kolo/core/base/error.h>

namespace kolo::models {

std::optional<Dataset> load_digits(const std::optional<std::string>& data, Split split) {
  if (data == "generated") return generated_digits(split);
  const auto folder = find_mnist(data);
  if (split == Split::test && !has_mnist_test(folder)) return std::nullopt;
  return load_mnist(folder, split);
}

}  // namespace kolo::models

namespace kolo::models::detail {

void check_digits(const Output& x, std::string_view model) {
  const Shape flat = {-1, 784}, images = {-1, 1, 28, 28};
  const bool shaped =
      x.shape().has_rank() && (x.shape().is_compatible_with(flat) || x.shape().is_compatible_with(images));
  if (!shaped || (x.dtype() != DType::f32 && x.dtype() != DType::f64))
    throw InvalidArgumentError("{}: its input {} is {} {}; it must be floating point, [N,784] or [N,1,28,28]",
                               model, x.name(), x.dtype(), x.shape());
}

}  // namespace kolo::models::detail
