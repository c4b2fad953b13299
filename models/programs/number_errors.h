// How far the numbers that a model finds are from those that are right.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace kolo::models {

struct NumberErrors {
  double mae = 0;            // mean of |found − right| over samples and outputs
  double rmse = 0;           // √ of the mean of (found − right)²
  std::optional<double> r2;  // 1 − Σ (found − right)² / Σ (right − mean)², the mean over the outputs; none
                             // where the right numbers of an output are all alike
};

/// Sums over samples, of which each rank has a part. One thread.
class ErrorSums {
 public:
  explicit ErrorSums(std::int64_t outputs) : outputs_(static_cast<std::size_t>(outputs)) {}

  /// One sample; as many numbers as outputs.
  void add(const float* found, const float* right);
  /// For another rank, whose sums take them in.
  std::vector<double> numbers() const;
  void add_numbers(const std::vector<double>& theirs);
  /// NaN where there are no samples.
  NumberErrors errors() const;

 private:
  struct Output {
    double absolute = 0, squares = 0;  // of the errors
    double mean = 0, spread = 0;       // of the right numbers; the sum of squares around their mean
  };
  double samples_ = 0;
  std::vector<Output> outputs_;
};

}  // namespace kolo::models
