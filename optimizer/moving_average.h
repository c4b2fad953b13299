// Moving averages of the variables that are trained, which often do better than their last values: Polyak,
// Juditsky, "Acceleration of stochastic approximation by averaging", SIAM J. Control Optim. 30 (1992), in
// TensorFlow's exponential form.
#pragma once

#include <vector>

#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/variables.h>

namespace kolo {

/// Behind a variable's name, that of its average.
inline constexpr char kAverageSuffix[] = "/ExponentialMovingAverage";

/// Each average starts as its variable does and is saved with it, as "<variable>/ExponentialMovingAverage",
/// not trainable. One thread at a time builds a graph.
class ExponentialMovingAverage {
 public:
  /// decay: share of its old value that an average keeps in a step, 0 ≤ decay < 1, and no more than
  /// (1 + n) / (10 + n) where n is the global step behind it, so that the first values are soon forgotten.
  /// Throws InvalidArgumentError.
  explicit ExponentialMovingAverage(double decay);

  /// After `step`, which updates the variables: average ← decay · average + (1 − decay) · variable. Returns
  /// what a run takes in place of `step`. A step that is not applied moves no average. Makes the graph's
  /// global step if there is none. Throws InvalidArgumentError if it has been called before.
  Operation apply(Scope& s, const std::vector<Variable>& variables, Operation step);
  /// Throws InvalidArgumentError for a variable that apply() was not given.
  Variable average(const Variable& variable) const;
  /// In the order of apply()'s variables.
  const std::vector<Variable>& averages() const { return averages_; }
  /// Each average takes its variable's value: where the variables have been given others than their
  /// initializers'.
  Operation start(Scope& s) const;
  /// Each variable and its average change places: before an evaluation, and once more behind it. All ranks or
  /// none run it between two steps.
  Operation swap(Scope& s) const;

 private:
  double decay_;
  std::vector<Variable> variables_, averages_;
};

}  // namespace kolo
