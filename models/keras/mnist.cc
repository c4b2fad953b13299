#include <kolo/models/keras/data.h>

#include <kolo/core/base/error.h>
#include <kolo/models/data.h>

namespace kolo::keras {

Samples load_mnist(const Workspace& workspace, models::Split split, const std::optional<std::string>& data) {
  const std::optional<models::Dataset> digits = models::load_digits(data, split);
  if (!digits)
    throw NotFoundError("the {} split of {} is missing", models::name(split), data.value_or("MNIST"));
  const std::int64_t samples = digits->size();
  const bool last = workspace.channels_last();
  const Tensor x(DType::f32, last ? Shape{samples, 28, 28, 1} : Shape{samples, 1, 28, 28});
  for (std::int64_t i = 0; i < x.elements(); ++i)
    x.data<float>()[i] = static_cast<float>(digits->images.data<std::uint8_t>()[i]) / 255.F;
  const Tensor y(DType::i32, {samples});
  for (std::int64_t i = 0; i < samples; ++i)
    y.data<std::int32_t>()[i] = digits->labels.data<std::uint8_t>()[i];
  return {.x = x, .y = y};
}

}  // namespace kolo::keras
