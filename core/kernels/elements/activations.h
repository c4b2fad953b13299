// Activations with a parameter, as functors; see binary.h. The formulas of cpu/loops/activation_loops.cc,
// with the library's functions.
#pragma once

#include <cmath>

#include <kolo/core/kernels/elements/host_device.h>

namespace kolo::elements {

// Each has value(x, alpha) and derivative(x, alpha); what has no parameter does not look at it.

/// 1 / (1 + e⁻ˣ), from the exponential that cannot overflow.
KOLO_HOST_DEVICE inline float logistic(float x) {
  const float e = std::exp(-std::abs(x)), small = e / (1 + e);
  return x > 0 ? 1 - small : small;
}

struct Gelu {
  KOLO_HOST_DEVICE static float distribution(float x) {
    return 0.5f * (1 + std::erf(x * 0.70710678118654752f));
  }
  KOLO_HOST_DEVICE static float value(float x, float) { return x * distribution(x); }
  KOLO_HOST_DEVICE static float derivative(float x, float) {
    return distribution(x) + x * 0.39894228040143268f * std::exp(-0.5f * x * x);
  }
};
struct GeluTanh {
  static constexpr float kSqrt2OverPi = 0.79788456080286536f;
  KOLO_HOST_DEVICE static float tangent(float x) {
    return std::tanh(kSqrt2OverPi * x * (1 + 0.044715f * x * x));
  }
  KOLO_HOST_DEVICE static float value(float x, float) { return 0.5f * x * (1 + tangent(x)); }
  KOLO_HOST_DEVICE static float derivative(float x, float) {
    const float t = tangent(x);
    // 1 − t² is 0 where x² would be infinite.
    const float slope = (1 - t * t) * kSqrt2OverPi * (1 + 3 * 0.044715f * x * x);
    return 0.5f * (1 + t) + 0.5f * x * (std::abs(x) > 20 ? 0 : slope);
  }
};
struct Swish {
  KOLO_HOST_DEVICE static float value(float x, float) { return x * logistic(x); }
  KOLO_HOST_DEVICE static float derivative(float x, float) {
    const float y = logistic(x);
    return y * (1 + x * (1 - y));
  }
};
struct Elu {
  KOLO_HOST_DEVICE static float value(float x, float alpha) { return x > 0 ? x : alpha * std::expm1(x); }
  KOLO_HOST_DEVICE static float derivative(float x, float alpha) {
    return x > 0 ? 1.0f : alpha * std::exp(x);
  }
};
struct Selu {
  static constexpr float kScale = 1.0507009873554805f, kAlpha = 1.6732632423543772f;
  KOLO_HOST_DEVICE static float value(float x, float) { return kScale * Elu::value(x, kAlpha); }
  KOLO_HOST_DEVICE static float derivative(float x, float) { return kScale * Elu::derivative(x, kAlpha); }
};
struct LeakyRelu {
  KOLO_HOST_DEVICE static float value(float x, float alpha) { return x > 0 ? x : alpha * x; }
  KOLO_HOST_DEVICE static float derivative(float x, float alpha) { return x > 0 ? 1.0f : alpha; }
};
struct Softplus {
  KOLO_HOST_DEVICE static float value(float x, float) {
    return (x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(x)));
  }
  KOLO_HOST_DEVICE static float derivative(float x, float) { return logistic(x); }
};
struct Relu6 {
  KOLO_HOST_DEVICE static float value(float x, float) { return x < 0 ? 0 : x > 6 ? 6 : x; }
  KOLO_HOST_DEVICE static float derivative(float x, float) { return x > 0 && x < 6 ? 1.0f : 0.0f; }
};

/// A NaN stays one.
template <typename Function>
struct Activate {
  float alpha;
  KOLO_HOST_DEVICE float operator()(float x) const { return is_nan(x) ? x : Function::value(x, alpha); }
};
template <typename Function>
struct ActivateGrad {
  float alpha;
  KOLO_HOST_DEVICE float operator()(float dy, float x) const {
    return is_nan(x) ? x : dy * Function::derivative(x, alpha);
  }
};

}  // namespace kolo::elements
