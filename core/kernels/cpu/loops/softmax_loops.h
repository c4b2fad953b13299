// The inner loops of what is made of exponentials and their sum, compiled once for each instruction set and
// chosen at run time.
#pragma once

#include <cstdint>

namespace kolo::detail {

/// On rows of f32 of at least one element. NaN stays NaN.
struct SoftmaxLoops {
  /// The largest of x; any number or NaN where an element is NaN.
  float (*largest)(const float* x, std::int64_t count);
  /// y = e^(x − center), and their sum. y may be x; center is the largest of x, or about its logarithm of the
  /// sum.
  float (*exponentials)(const float* x, float center, float* y, std::int64_t count);
  /// Σ a · b
  float (*dot)(const float* a, const float* b, std::int64_t count);
  /// y = y · factor
  void (*scale)(float* y, float factor, std::int64_t count);
  /// From scores and the softmax's gradient dp to the softmax p and the scores' gradient:
  /// p = e^(scores − log_sum), in the place of the scores; ds = p · (dp − mean) · factor, in the place of dp.
  void (*score_gradient)(float* scores, float* dp, float log_sum, float mean, float factor,
                         std::int64_t count);
};

/// For the processor this runs on.
const SoftmaxLoops& softmax_loops();

}  // namespace kolo::detail
