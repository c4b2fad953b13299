// How many test samples a model gets right, and its loss on them, each counted once over all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <kolo/core/graph/scope.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/hook.h>
#include <kolo/models/batches.h>
#include <kolo/models/programs/confusion.h>
#include <kolo/models/programs/label_scores.h>
#include <kolo/models/programs/number_errors.h>
#include <kolo/models/samples.h>

namespace kolo::models {

/// The nodes that tell how good a batch's answers are.
class AnswerCheck {
 public:
  AnswerCheck() = default;
  /// logits: [N,outputs]; samples and labels are what the model is fed with; loss: a scalar.
  AnswerCheck(const Scope& s, LabelKind kind, Output logits, Output samples, Output labels, Output loss);

  LabelKind kind() const { return kind_; }
  Output right() const { return right_; }      // how many labels: f32 scalar; of classes alone
  Output loss() const { return loss_; }        // mean over the labels: f32 scalar
  Output answers() const { return answers_; }  // the likeliest class of each label: i64 [N]; of classes alone
  Output logits() const { return logits_; }
  Output samples() const { return samples_; }
  Output labels() const { return labels_; }

 private:
  LabelKind kind_ = LabelKind::one_class;
  Output right_, loss_, answers_, logits_, samples_, labels_;
};

struct Evaluation {
  std::int64_t correct = 0;                 // of several labels: samples with all of them right
  std::int64_t labels = 0;                  // one of a sample, of a text each token
  double loss_sum = 0;                      // of each of them, in nats; or of numbers their loss
  std::optional<NumberErrors> errors = {};  // of numbers to find; `correct` is then 0
  std::optional<LabelScores> scores = {};   // of several labels of each sample
  double accuracy() const {
    return labels == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(labels);
  }
  double loss() const { return labels == 0 ? 0 : loss_sum / static_cast<double>(labels); }
};

/// What is known of the answers beyond their number.
struct AnswersByClass {
  Confusion confusion;
  std::optional<double> auc;  // of two classes
};

/// All ranks call it together; all get the same numbers. by_class: filled in where it is given, of samples
/// with a label each.
Evaluation evaluate_on_all_ranks(Session& session, const AnswerCheck& check,
                                 const std::shared_ptr<const SampleSet>& test, const BatchOptions& batches,
                                 std::optional<AnswersByClass>* by_class = nullptr);

/// Evaluates when the session ends well. Behind the saver's hook, it finds the last step saved already.
class EvaluationHook : public SessionRunHook {
 public:
  /// test: nullptr if there is none. swap_averages: runs before and behind each evaluation, if it is not
  /// empty. saved_in: the folder with the last step, for the error of a picture that cannot be read.
  EvaluationHook(AnswerCheck check, std::shared_ptr<const SampleSet> test, const BatchOptions& batches,
                 Operation swap_averages, std::string saved_in = {})
      : check_(check),
        test_(std::move(test)),
        batches_(batches),
        swap_averages_(swap_averages),
        saved_in_(std::move(saved_in)) {}
  /// The same on all ranks.
  void skip(bool yes) { skip_ = yes; }
  /// As end() does, at any step. All ranks together; nothing without test samples.
  std::optional<Evaluation> evaluate(Session& session) const;
  void end(Session& session) override;
  /// Nothing before end(), or without test samples.
  const std::optional<Evaluation>& result() const { return result_; }

 private:
  AnswerCheck check_;
  std::shared_ptr<const SampleSet> test_;
  BatchOptions batches_;
  Operation swap_averages_;
  std::string saved_in_;
  bool skip_ = false;
  std::optional<Evaluation> result_;
};

}  // namespace kolo::models
