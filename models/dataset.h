// Labelled images in memory: what every source of them hands to the batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/tensor/tensor.h>

namespace kolo::models {

enum class Split { train, test };
/// "train" or "test".
inline const char* name(Split split) { return split == Split::train ? "train" : "test"; }

/// A copy shares the pixels.
struct Dataset {
  Tensor images;     // u8 [N,C,H,W], or [N,H,W] of one channel; digits: [N,28,28], 0 is paper
  Tensor labels;     // u8 [N], 0 … 9
  std::string name;  // for outputs: "MNIST", "generated digits", "CIFAR-10"
  std::vector<std::string> class_names = {};  // by label; empty: they are numbers

  std::int64_t size() const { return labels.elements(); }
  std::int64_t channels() const { return images.shape().rank() == 4 ? images.shape().dim(1) : 1; }
  std::int64_t height() const { return images.shape().dim(-2); }
  std::int64_t width() const { return images.shape().dim(-1); }
  std::int64_t pixels() const { return channels() * height() * width(); }  // of one image
};

}  // namespace kolo::models
