// How many test samples a model gets right, each counted once over all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <kolo/core/graph/scope.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/hook.h>
#include <kolo/models/dataset.h>

namespace kolo::models {

/// The nodes that count the right answers of a batch.
class CorrectCount {
 public:
  CorrectCount() = default;
  /// logits: [N,classes]; images and labels are what the model is fed with.
  CorrectCount(const Scope& s, Output logits, Output images, Output labels);

  Output count() const { return count_; }  // f32 scalar
  Output images() const { return images_; }
  Output labels() const { return labels_; }

 private:
  Output count_, images_, labels_;
};

struct Evaluation {
  std::int64_t correct = 0;
  std::int64_t samples = 0;
  double accuracy() const {
    return samples == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(samples);
  }
};

/// All ranks call it together; all get the same numbers.
Evaluation evaluate_on_all_ranks(Session& session, const CorrectCount& count, const Dataset& test,
                                 std::int64_t batch_size);

/// Evaluates when the session ends well. Behind the saver's hook, it finds the last step saved already.
class EvaluationHook : public SessionRunHook {
 public:
  EvaluationHook(CorrectCount count, std::optional<Dataset> test, std::int64_t batch_size)
      : count_(count), test_(std::move(test)), batch_size_(batch_size) {}
  /// The same on all ranks.
  void skip(bool yes) { skip_ = yes; }
  /// As end() does, at any step. All ranks together; nothing without test samples.
  std::optional<Evaluation> evaluate(Session& session) const;
  void end(Session& session) override;
  /// Nothing before end(), or without test samples.
  const std::optional<Evaluation>& result() const { return result_; }

 private:
  CorrectCount count_;
  std::optional<Dataset> test_;
  std::int64_t batch_size_;
  bool skip_ = false;
  std::optional<Evaluation> result_;
};

}  // namespace kolo::models
