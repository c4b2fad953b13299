// How values are spread, in TensorFlow's buckets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

/// Buckets whose ends grow by a tenth from 1e-12 to 1e20, the same below zero, and one of zero.
class Histogram {
 public:
  Histogram();
  /// `value` is finite.
  void add(double value);
  /// All elements of numbers. Throws InvalidArgumentError `Nan in summary histogram for: <name>`, `Infinity
  /// in summary histogram for: <name>`.
  void add(const Tensor& values, const std::string& name);

  double min() const { return min_; }
  double max() const { return max_; }
  double num() const { return num_; }
  double sum() const { return sum_; }
  double sum_squares() const { return sum_squares_; }

  /// As files have them: a run of empty buckets is one.
  struct Bucket {
    double limit;  // the upper end
    double count;
  };
  std::vector<Bucket> buckets() const;

 private:
  std::vector<double> counts_;
  double min_;
  double max_;
  double num_ = 0;
  double sum_ = 0;
  double sum_squares_ = 0;
};

}  // namespace kolo::detail
