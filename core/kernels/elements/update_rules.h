// The optimizers' rules, one element at a time, for the host and a GPU: what each has of its op's scalars,
// and the table of them. Their formulas: update_formulas-inl.h.
//
// The order of operations is TensorFlow 1's, in the variable's type, and nothing is contracted to fused
// multiply-add (-ffp-contract=off, --fmad=false): a loss curve can be compared with TensorFlow's, and a step
// gives the same bits on every instruction set and on every GPU. FTRL's power other than 0.5 alone is the
// library's.
#pragma once

#include <cmath>

#include <kolo/core/kernels/elements/host_device.h>
#include <kolo/core/kernels/elements/list.h>
#include <kolo/core/kernels/elements/numbers.h>

namespace kolo::elements {

// kName: as in update_rules() (ops/training.h). of(s): the rule from the op's scalars, in their order there.

template <typename T>
struct GradientDescentRule {
  static constexpr const char* kName = "GradientDescent";
  static constexpr int kSlots = 0;
  T rate;

  KOLO_HOST_DEVICE static GradientDescentRule of(const T* s) { return {.rate = s[0]}; }
};

template <typename T>
struct MomentumRule {
  static constexpr const char* kName = "Momentum";
  static constexpr int kSlots = 1;
  T rate;
  T momentum;

  KOLO_HOST_DEVICE static MomentumRule of(const T* s) { return {.rate = s[0], .momentum = s[1]}; }
};

template <typename T>
struct NesterovRule {
  static constexpr const char* kName = "Nesterov";
  static constexpr int kSlots = 1;
  T rate;
  T momentum;

  KOLO_HOST_DEVICE static NesterovRule of(const T* s) { return {.rate = s[0], .momentum = s[1]}; }
};

template <typename T>
struct AdagradRule {
  static constexpr const char* kName = "Adagrad";
  static constexpr int kSlots = 1;
  T rate;

  KOLO_HOST_DEVICE static AdagradRule of(const T* s) { return {.rate = s[0]}; }
};

template <typename T>
struct RmsPropRule {
  static constexpr const char* kName = "RMSProp";
  static constexpr int kSlots = 2;
  T rate;
  T one_minus_decay;
  T momentum;
  T epsilon;

  KOLO_HOST_DEVICE static RmsPropRule of(const T* s) {
    return {.rate = s[0], .one_minus_decay = 1 - s[1], .momentum = s[2], .epsilon = s[3]};
  }
};

template <typename T>
struct CenteredRmsPropRule {
  static constexpr const char* kName = "CenteredRMSProp";
  static constexpr int kSlots = 3;
  T rate;
  T one_minus_decay;
  T momentum;
  T epsilon;

  KOLO_HOST_DEVICE static CenteredRmsPropRule of(const T* s) {
    return {.rate = s[0], .one_minus_decay = 1 - s[1], .momentum = s[2], .epsilon = s[3]};
  }
};

template <typename T>
struct AdamRule {
  static constexpr const char* kName = "Adam";
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
};

/// Adam's with a scalar more.
template <typename T>
struct AdamWRule : AdamRule<T> {
  static constexpr const char* kName = "AdamW";

  KOLO_HOST_DEVICE static AdamWRule of(const T* s) {
    AdamWRule rule{AdamRule<T>::of(s)};
    rule.decay = s[2] * s[6];
    return rule;
  }
};

template <typename T>
struct AdadeltaRule {
  static constexpr const char* kName = "Adadelta";
  static constexpr int kSlots = 2;
  T rate;
  T rho;
  T one_minus_rho;
  T epsilon;

  KOLO_HOST_DEVICE static AdadeltaRule of(const T* s) {
    return {.rate = s[0], .rho = s[1], .one_minus_rho = 1 - s[1], .epsilon = s[2]};
  }
};

template <typename T>
struct FtrlRule {
  static constexpr const char* kName = "Ftrl";
  static constexpr int kSlots = 2;
  T rate;
  T l1;
  T two_l2;
  T two_shrinkage;
  T power;

  KOLO_HOST_DEVICE static FtrlRule of(const T* s) {
    return {.rate = s[0], .l1 = s[1], .two_l2 = 2 * s[2], .two_shrinkage = 2 * s[3], .power = -s[4]};
  }
};

template <typename T>
struct LionRule {
  static constexpr const char* kName = "Lion";
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
};

template <typename T>
using UpdateRules =
    List<AdadeltaRule<T>, AdagradRule<T>, AdamRule<T>, AdamWRule<T>, CenteredRmsPropRule<T>, FtrlRule<T>,
         GradientDescentRule<T>, LionRule<T>, MomentumRule<T>, NesterovRule<T>, RmsPropRule<T>>;

#include <kolo/core/kernels/elements/update_formulas-inl.h>

}  // namespace kolo::elements
