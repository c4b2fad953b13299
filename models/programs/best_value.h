// What kolo-train's --early-stopping and --keep-best remember of the evaluations so far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <kolo/models/programs/evaluation.h>

namespace kolo::models {

/// "test_loss|test_accuracy|…": as the rows of metrics.jsonl call them.
std::string evaluation_metrics();
bool is_evaluation_metric(const std::string& name);

/// The best value of one metric, and how many evaluations ago it was. The same on all ranks. One thread.
class BestValue {
 public:
  /// metric: one of evaluation_metrics().
  explicit BestValue(std::string metric) : metric_(std::move(metric)) {}

  /// Throws InvalidArgumentError if there is no such metric: numbers have no accuracy, and classes no errors.
  void check(LabelKind kind) const;
  /// True if it is better than all before. What is no number never is.
  bool note(std::int64_t step, const Evaluation& evaluation);
  /// The step of the last evaluation; 0: there was none.
  std::int64_t noted() const { return noted_; }
  /// Evaluations since the best one.
  std::int64_t waited() const { return waited_; }
  std::int64_t step() const { return step_; }
  /// Some evaluation had a number.
  bool is_known() const { return best_.has_value(); }
  const std::string& metric() const { return metric_; }
  /// `test_loss 0.0412 at step 800`.
  std::string text() const;

  /// JSON. What another metric has left is passed over.
  std::string state() const;
  void restore(const std::string& state);

 private:
  std::string metric_;
  std::optional<double> best_;
  std::int64_t step_ = 0, noted_ = 0, waited_ = 0;
};

}  // namespace kolo::models
