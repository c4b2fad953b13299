// A data set whose samples tell their own number.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <kolo/models/batches.h>

namespace kolo::models {

/// Sample i has the number i in its first two pixels (i % 256, i / 256) and the label i % 10.
inline Dataset numbered_dataset(std::int64_t samples) {
  Dataset dataset{Tensor::zeros(DType::u8, {samples, 28, 28}), Tensor(DType::u8, {samples}), "numbers"};
  for (std::int64_t i = 0; i < samples; ++i) {
    dataset.images.data<std::uint8_t>()[i * 784] = static_cast<std::uint8_t>(i % 256);
    dataset.images.data<std::uint8_t>()[i * 784 + 1] = static_cast<std::uint8_t>(i / 256);
    dataset.labels.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i % 10);
  }
  return dataset;
}

/// The numbers of a batch's samples.
inline std::vector<int> numbers(const Batch& batch) {
  std::vector<int> found;
  for (std::int64_t i = 0; i < batch.labels.elements(); ++i) {
    const float* const image = batch.samples.data<float>() + i * 784;
    found.push_back(static_cast<int>(std::lround(image[0] * 255) + 256 * std::lround(image[1] * 255)));
  }
  return found;
}

inline std::vector<int> next_numbers(BatchSource& source) {
  Batch batch;
  source.next(batch);
  return numbers(batch);
}

}  // namespace kolo::models
