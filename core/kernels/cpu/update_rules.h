// The optimizers' rules over ranges of elements, in the widest vectors of the processor. Each rule reads and
// writes its arrays once: memory is the cost, not arithmetic.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <variant>

namespace kolo::detail {

// The order of operations is TensorFlow 1's, in the variable's type, and nothing is contracted to fused
// multiply-add: a loss curve can be compared with TensorFlow's, and a step gives the same bits on every
// instruction set, for every cut of the elements into ranges. g is the gradient.

/// v −= g · rate
template <typename T>
struct GradientDescentRule {
  T rate;
};

/// a = a · momentum + g; v −= a · rate
template <typename T>
struct MomentumRule {
  T rate;
  T momentum;
};

/// a = a · momentum + g; v −= g · rate + a · momentum · rate
template <typename T>
struct NesterovRule {
  T rate;
  T momentum;
};

/// a += g²; v −= g · rate / √a
template <typename T>
struct AdagradRule {
  T rate;
};

/// ms += (g² − ms) · one_minus_decay; mom = mom · momentum + g · rate / √(ms + epsilon); v −= mom
template <typename T>
struct RmsPropRule {
  T rate;
  T one_minus_decay;
  T momentum;
  T epsilon;
};

/// With slots ms, mg, mom: mg += (g − mg) · one_minus_decay as well, and √(ms − mg² + epsilon).
template <typename T>
struct CenteredRmsPropRule {
  T rate;
  T one_minus_decay;
  T momentum;
  T epsilon;
};

/// m += (g − m) · one_minus_beta1; w += (g² − w) · one_minus_beta2;
/// v −= m · rate / (√w + epsilon), and, decay not being 0, v · decay before that.
template <typename T>
struct AdamRule {
  T rate;
  T one_minus_beta1;
  T one_minus_beta2;
  T epsilon;
  T decay;
};

/// a = a · rho + g² · one_minus_rho; u = √(d + epsilon) / √(a + epsilon) · g; v −= u · rate;
/// d = d · rho + u² · one_minus_rho
template <typename T>
struct AdadeltaRule {
  T rate;
  T rho;
  T one_minus_rho;
  T epsilon;
};

/// n = a + g²; z += g + v · two_shrinkage − (nᵖ − aᵖ) / rate · v; a = n;
/// v = (sign(z) · l1 − z) / (nᵖ / rate + two_l2) where |z| > l1, else 0.  p = power, 0.5 for a root
template <typename T>
struct FtrlRule {
  T rate;
  T l1;
  T two_l2;
  T two_shrinkage;
  T power;
};

/// c = m · beta1 + g · one_minus_beta1; v −= (sign(c) + v · decay) · rate; m = m · beta2 + g ·
/// one_minus_beta2
template <typename T>
struct LionRule {
  T rate;
  T beta1;
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;
  T decay;
};

template <typename T>
using UpdateRule =
    std::variant<GradientDescentRule<T>, MomentumRule<T>, NesterovRule<T>, AdagradRule<T>, RmsPropRule<T>,
                 CenteredRmsPropRule<T>, AdamRule<T>, AdadeltaRule<T>, FtrlRule<T>, LionRule<T>>;

inline constexpr int kMaxSlots = 3;

/// `count` elements of a variable, of its slots in the order in which the rule names them, of its gradient.
template <typename T>
struct UpdatedRange {
  T* v = nullptr;
  std::array<T*, kMaxSlots> slots{};
  const T* gradient = nullptr;
  std::int64_t count = 0;
};

/// Applies the rule to all ranges, on as many threads as a kernel may use: each takes an equal part of the
/// elements, whichever ranges they are in. Ranges must not overlap.
void apply_rule(const UpdateRule<float>& rule, std::span<const UpdatedRange<float>> ranges);
void apply_rule(const UpdateRule<double>& rule, std::span<const UpdatedRange<double>> ranges);

}  // namespace kolo::detail
