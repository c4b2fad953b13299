// One batch of a model's samples without any data.
#pragma once

#include <cstdint>
#include <optional>

#include <kolo/core/tensor/tensor.h>
#include <kolo/models/models.h>

namespace kolo::bench {

/// Numbers from 0 to 1 that look random, the same in every process.
Tensor made_up_images(const Shape& shape);

struct MadeUpBatch {
  std::int64_t size;  // mlp 128, resnet50 8, vgg16 4, gpt 16, others 64
  Tensor samples;     // made-up images, or tokens
  Tensor labels;
};

/// The same in every process. size: where it shall be another.
MadeUpBatch made_up_batch(const models::Model& model, std::optional<std::int64_t> size = {});

}  // namespace kolo::bench
