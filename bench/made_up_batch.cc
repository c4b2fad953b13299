#include <bench/made_up_batch.h>

#include <map>
#include <string>

namespace kolo::bench {
namespace {

std::int64_t batch_of(const std::string& model) {
  static const std::map<std::string, std::int64_t> others{
      {"mlp", 128}, {"resnet50", 8}, {"vgg16", 4}, {"gpt", 16}};
  const auto found = others.find(model);
  return found != others.end() ? found->second : 64;
}

Tensor whole_numbers(std::int64_t count, std::int64_t limit) {
  Tensor numbers(DType::i32, {count});
  for (std::int64_t i = 0; i < count; ++i)
    numbers.data<std::int32_t>()[i] = static_cast<std::int32_t>(i % limit);
  return numbers;
}

}  // namespace

// Any numbers do, as long as they are no special case for the arithmetic.
Tensor made_up_images(const Shape& shape) {
  Tensor images(DType::f32, shape);
  std::uint32_t state = 1;
  for (float& pixel : images.span<float>()) {
    state = state * 1664525 + 1013904223;
    pixel = static_cast<float>(state >> 8) * 0x1p-24f;
  }
  return images;
}

MadeUpBatch made_up_batch(const models::Model& model, std::optional<std::int64_t> size) {
  const std::int64_t samples = size.value_or(batch_of(model.name)),
                     answers = samples * model.labels_per_sample();
  std::vector<std::int64_t> dims = model.sample.dims();
  dims.insert(dims.begin(), samples);
  const Shape shape(dims);
  return {samples,
          model.input == DType::i32 ? whole_numbers(shape.elements(), model.classes).reshaped(shape)
                                    : made_up_images(shape),
          whole_numbers(answers, model.classes)};
}

}  // namespace kolo::bench
