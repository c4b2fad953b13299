// A trained network as a function: samples in, a share for each class out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/graph/output.h>
#include <kolo/core/graph/scope.h>
#include <kolo/core/runtime/config.h>
#include <kolo/core/tensor/tensor.h>
#include <kolo/models/samples.h>

namespace kolo::models {

/// The network of a checkpoint folder, in its inference form. A copy shares the weights. Any number of
/// threads predict at the same time. It works without init(), and on several ranks each has its own.
class Predictor {
 public:
  /// folder: kolo-train's, or one to which write_inference_graph has written. Reads inference.pb, the newest
  /// intact checkpoint and, where there is one, config.json. The weights are the moving averages where the
  /// checkpoint has them, as --evaluate takes them. A later save does not change a predictor. Throws
  /// NotFoundError for a folder without a network or without a checkpoint, DataLossError for a damaged file,
  /// InvalidArgumentError for a network of several inputs or outputs, and what Session throws for `config`.
  static Predictor load(const std::string& folder, const SessionConfig& config = {});

  /// samples: [N, sample()…]. f32 as in training: pixels in 0 … 1, columns of a table as they are; u8 pixels
  /// are divided by 255, f64 is rounded. i32 or i64 tokens for a text model. --normalize's mean and deviation
  /// are part of the network. Returns f32 [N, classes()] whose rows add up to 1; of a text model
  /// [N·T, classes()], a row for the token behind each. Of a network for numbers to find these, [N, outputs],
  /// and of one for several labels the probability of each, [N, labels]. N may be 0, and another N than
  /// before compiles once. Throws InvalidArgumentError for another shape or type, and for numbers that are
  /// NaN or infinite, with the place of the first one.
  Tensor operator()(const Tensor& samples) const;
  /// The same before the softmax, or the sigmoid of several labels.
  Tensor logits(const Tensor& samples) const;

  const Shape& sample() const;  // of one sample: [C,H,W] for an image, [T] for a text
  DType dtype() const;          // f32, or i32 for tokens
  std::int64_t classes() const;
  /// By class, number or label, as many as classes(); "0", "1", … where the folder does not name them.
  const std::vector<std::string>& class_names() const;
  std::int64_t global_step() const;  // of the checkpoint

 private:
  struct Network;
  explicit Predictor(std::shared_ptr<Network> network);
  Tensor run(const Output& output, const Tensor& samples) const;
  std::shared_ptr<Network> network_;
};

}  // namespace kolo::models

namespace kolo::models::detail {

/// What a model's logits [N,outputs] say: shares of classes, numbers as they are, a probability for each of
/// several labels.
Output answers_of(const Scope& s, Output logits, LabelKind kind);

}  // namespace kolo::models::detail
