// Labelled images in memory: what every source of digits hands to the batches.
#pragma once

#include <cstdint>
#include <string>

#include <kolo/core/tensor/tensor.h>

namespace kolo::models {

enum class Split { train, test };
/// "train" or "test".
inline const char* name(Split split) { return split == Split::train ? "train" : "test"; }

/// A copy shares the pixels.
struct Dataset {
  Tensor images;     // u8 [N,28,28], 0 is paper
  Tensor labels;     // u8 [N], 0 … 9
  std::string name;  // for outputs: "MNIST", "generated digits"

  std::int64_t size() const { return labels.elements(); }
};

}  // namespace kolo::models
