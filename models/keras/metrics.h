// What a training shows beside its loss.
#pragma once

#include <string>
#include <utility>

#include <kolo/models/keras/losses.h>

namespace kolo::keras {

/// A value. Names: accuracy (acc), crossentropy (ce), which choose by the loss; binary_accuracy,
/// categorical_accuracy, sparse_categorical_accuracy, top_k_categorical_accuracy and
/// sparse_top_k_categorical_accuracy (k = 5); any loss. Or a function with a name.
class Metric {
 public:
  Metric(const char* name) : Metric(std::string(name)) {}
  /// Throws InvalidArgumentError `Unknown metric function: <n>`, with the nearest known one.
  Metric(const std::string& name);
  Metric(std::string name, LossFunction function) : name_(std::move(name)), function_(std::move(function)) {}

  const std::string& name() const { return name_; }
  /// How logs call it: "acc", "ce", or the long name.
  std::string shown_name() const;
  /// For an output with this loss: [N]. t: as the loss takes it.
  Output values(const Scope& s, Output t, Output p, const Loss& loss) const;
  bool is_named() const { return function_ == nullptr; }

 private:
  std::string name_;
  LossFunction function_;  // none: by name
};

}  // namespace kolo::keras
