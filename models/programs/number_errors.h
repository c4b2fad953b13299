// How far the numbers that a model finds are from those that are right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace kolo::models {

/// Of one of the outputs; as below.
struct OutputErrors {
  std::string name;
  double mae = 0, rmse = 0;
  std::optional<double> r2;
};

struct NumberErrors {
  double mae = 0;            // mean of |found − right| over samples and outputs
  double rmse = 0;           // √ of the mean of (found − right)²
  std::optional<double> r2;  // 1 − Σ (found − right)² / Σ (right − mean)², the mean over the outputs; none
                             // where the right numbers of an output are all alike
  std::vector<OutputErrors> each = {};  // by output
};

/// Sums over samples, of which each rank has a part. One thread.
class ErrorSums {
 public:
  /// names: of the outputs, as many as there are.
  explicit ErrorSums(std::vector<std::string> names) : names_(std::move(names)), outputs_(names_.size()) {}

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
  std::vector<std::string> names_;
  std::vector<Output> outputs_;
};

/// A table for a terminal: the errors of each output.
std::string to_text(const std::vector<OutputErrors>& errors);
/// {"targets": [{"target", "mae", "rmse", "r2"}]}
nlohmann::ordered_json to_json(const std::vector<OutputErrors>& errors);

}  // namespace kolo::models
