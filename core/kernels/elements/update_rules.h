// The optimizers' rules, one element at a time, for the host and a GPU.
//
// The order of operations is TensorFlow 1's, in the variable's type, and nothing is contracted to fused
// multiply-add (-ffp-contract=off, --fmad=false): a loss curve can be compared with TensorFlow's, and a step
// gives the same bits on every instruction set and on every GPU. FTRL's power other than 0.5 alone is the
// library's. g is the gradient.
#pragma once

#include <cmath>

#include <kolo/core/kernels/elements/host_device.h>

namespace kolo::elements {

// of(s): the rule from the op's scalars, in the order of update_rules() (ops/training.h). A call updates an
// element v and its kSlots slots, in the order in which the rule names them.

/// v −= g · rate
template <typename T>
struct GradientDescentRule {
  static constexpr int kSlots = 0;
  T rate;

  KOLO_HOST_DEVICE static GradientDescentRule of(const T* s) { return {.rate = s[0]}; }
  KOLO_HOST_DEVICE void operator()(T& v, T*, T g) const { v -= g * rate; }
};

/// a = a · momentum + g; v −= a · rate
template <typename T>
struct MomentumRule {
  static constexpr int kSlots = 1;
  T rate;
  T momentum;

  KOLO_HOST_DEVICE static MomentumRule of(const T* s) { return {.rate = s[0], .momentum = s[1]}; }
  KOLO_HOST_DEVICE void operator()(T& v, T* slot, T g) const {
    slot[0] = slot[0] * momentum + g;
    v -= slot[0] * rate;
  }
};

/// a = a · momentum + g; v −= g · rate + a · momentum · rate
template <typename T>
struct NesterovRule {
  static constexpr int kSlots = 1;
  T rate;
  T momentum;

  KOLO_HOST_DEVICE static NesterovRule of(const T* s) { return {.rate = s[0], .momentum = s[1]}; }
  KOLO_HOST_DEVICE void operator()(T& v, T* slot, T g) const {
    slot[0] = slot[0] * momentum + g;
    v -= g * rate + slot[0] * momentum * rate;
  }
};

/// a += g²; v −= g · rate / √a
template <typename T>
struct AdagradRule {
  static constexpr int kSlots = 1;
  T rate;

  KOLO_HOST_DEVICE static AdagradRule of(const T* s) { return {.rate = s[0]}; }
  KOLO_HOST_DEVICE void operator()(T& v, T* slot, T g) const {
    slot[0] += g * g;
    v -= g * rate / std::sqrt(slot[0]);
  }
};

/// ms += (g² − ms) · one_minus_decay; mom = mom · momentum + g · rate / √(ms + epsilon); v −= mom
template <typename T>
struct RmsPropRule {
  static constexpr int kSlots = 2;
  T rate;
  T one_minus_decay;
  T momentum;
  T epsilon;

  KOLO_HOST_DEVICE static RmsPropRule of(const T* s) {
    return {.rate = s[0], .one_minus_decay = 1 - s[1], .momentum = s[2], .epsilon = s[3]};
  }
  KOLO_HOST_DEVICE void operator()(T& v, T* slot, T g) const {
    slot[0] += (g * g - slot[0]) * one_minus_decay;
    slot[1] = slot[1] * momentum + g * rate / std::sqrt(slot[0] + epsilon);
    v -= slot[1];
  }
};

/// With slots ms, mg, mom: mg += (g − mg) · one_minus_decay as well, and √(ms − mg² + epsilon).
template <typename T>
struct CenteredRmsPropRule {
  static constexpr int kSlots = 3;
  T rate;
  T one_minus_decay;
  T momentum;
  T epsilon;

  KOLO_HOST_DEVICE static CenteredRmsPropRule of(const T* s) {
    return {.rate = s[0], .one_minus_decay = 1 - s[1], .momentum = s[2], .epsilon = s[3]};
  }
  KOLO_HOST_DEVICE void operator()(T& v, T* slot, T g) const {
    slot[0] += (g * g - slot[0]) * one_minus_decay;
    slot[1] += (g - slot[1]) * one_minus_decay;
    const T variance = slot[0] - slot[1] * slot[1] + epsilon;
    slot[2] = slot[2] * momentum + g * rate / std::sqrt(variance);
    v -= slot[2];
  }
};

/// m += (g − m) · one_minus_beta1; w += (g² − w) · one_minus_beta2;
/// v −= m · rate / (√w + epsilon), and, decay not being 0, v · decay before that.
template <typename T>
struct AdamRule {
  static constexpr int kSlots = 2;
  T rate;
  T one_minus_beta1;
  T one_minus_beta2;
  T epsilon;
  T decay;

  KOLO_HOST_DEVICE static AdamRule of(const T* s) {
    return {.rate = s[2] * std::sqrt(1 - s[1]) / (1 - s[0]),
            .one_minus_beta1 = 1 - s[3],
            .one_minus_beta2 = 1 - s[4],
            .epsilon = s[5],
            .decay = 0};
  }
  /// AdamW's, with a scalar more.
  KOLO_HOST_DEVICE static AdamRule with_decay(const T* s) {
    AdamRule rule = of(s);
    rule.decay = s[2] * s[6];
    return rule;
  }
  KOLO_HOST_DEVICE void operator()(T& v, T* slot, T g) const {
    slot[0] += (g - slot[0]) * one_minus_beta1;
    slot[1] += (g * g - slot[1]) * one_minus_beta2;
    if (decay != 0) v -= v * decay;
    v -= slot[0] * rate / (std::sqrt(slot[1]) + epsilon);
  }
};

/// a = a · rho + g² · one_minus_rho; u = √(d + epsilon) / √(a + epsilon) · g; v −= u · rate;
/// d = d · rho + u² · one_minus_rho
template <typename T>
struct AdadeltaRule {
  static constexpr int kSlots = 2;
  T rate;
  T rho;
  T one_minus_rho;
  T epsilon;

  KOLO_HOST_DEVICE static AdadeltaRule of(const T* s) {
    return {.rate = s[0], .rho = s[1], .one_minus_rho = 1 - s[1], .epsilon = s[2]};
  }
  KOLO_HOST_DEVICE void operator()(T& v, T* slot, T g) const {
    slot[0] = slot[0] * rho + g * g * one_minus_rho;
    const T u = std::sqrt(slot[1] + epsilon) / std::sqrt(slot[0] + epsilon) * g;
    slot[1] = slot[1] * rho + u * u * one_minus_rho;
    v -= u * rate;
  }
};

/// n = a + g²; z += g + v · two_shrinkage − (nᵖ − aᵖ) / rate · v; a = n;
/// v = (sign(z) · l1 − z) / (nᵖ / rate + two_l2) where |z| > l1, else 0.  p = power, 0.5 for a root
template <typename T>
struct FtrlRule {
  static constexpr int kSlots = 2;
  T rate;
  T l1;
  T two_l2;
  T two_shrinkage;
  T power;

  KOLO_HOST_DEVICE static FtrlRule of(const T* s) {
    return {.rate = s[0], .l1 = s[1], .two_l2 = 2 * s[2], .two_shrinkage = 2 * s[3], .power = -s[4]};
  }
  KOLO_HOST_DEVICE void operator()(T& v, T* slot, T g) const {
    const T n = slot[0] + g * g;
    const T new_power = to_power(n), old_power = to_power(slot[0]);
    const T z = slot[1] + (g + v * two_shrinkage - (new_power - old_power) / rate * v);
    const T root = (std::copysign(l1, z) - z) / (new_power / rate + two_l2);
    slot[0] = n;
    slot[1] = z;
    v = std::abs(z) > l1 ? root : T(0);
  }
  KOLO_HOST_DEVICE T to_power(T x) const { return power == T(0.5) ? std::sqrt(x) : std::pow(x, power); }
};

/// c = m · beta1 + g · one_minus_beta1; v −= (sign(c) + v · decay) · rate; m = m · beta2 + g ·
/// one_minus_beta2
template <typename T>
struct LionRule {
  static constexpr int kSlots = 1;
  T rate;
  T beta1;
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;
  T decay;

  KOLO_HOST_DEVICE static LionRule of(const T* s) {
    return {.rate = s[0],
            .beta1 = s[1],
            .one_minus_beta1 = 1 - s[1],
            .beta2 = s[2],
            .one_minus_beta2 = 1 - s[2],
            .decay = s[3]};
  }
  KOLO_HOST_DEVICE void operator()(T& v, T* slot, T g) const {
    const T c = slot[0] * beta1 + g * one_minus_beta1;
    const T sign = c > 0 ? T(1) : c < 0 ? T(-1) : c;  // NaN stays NaN
    slot[0] = slot[0] * beta2 + g * one_minus_beta2;
    v -= (sign + v * decay) * rate;
  }
};

}  // namespace kolo::elements
