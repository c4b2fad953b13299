// Labelled images in memory: what every source of digits hands to the batches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <kolo/core/tensor/tensor.h>

namespace kolo::models {

enum class Split { train, test };
/// "train" or "test".
const char* name(Split split);

/// A copy shares the pixels.
struct Dataset {
  Tensor images;     // u8 [N,28,28], 0 is paper
  Tensor labels;     // u8 [N], 0 … 9
  std::string name;  // for outputs: "MNIST", "generated digits"

  std::int64_t size() const { return labels.elements(); }
};

/// The digits that `--data` names: "generated" draws them (generated_digits.h), all else is find_mnist's
/// (mnist.h). Nothing if the test split is asked for and its files are absent. Throws what those throw.
std::optional<Dataset> load_digits(const std::optional<std::string>& data, Split split);

}  // namespace kolo::models
