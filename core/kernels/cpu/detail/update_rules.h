// The optimizers' rules over a range of elements, in the widest vectors of the processor. Each rule reads and
// writes its arrays once: memory is the cost, not arithmetic.
#pragma once

#include <cstdint>
#include <variant>

namespace kolo::detail {

// The order of operations is TensorFlow 1's, in the variable's type, and nothing is contracted to fused
// multiply-add: a loss curve can be compared with TensorFlow's, and a step gives the same bits on every
// instruction set.

/// v −= gradient · rate
template <typename T>
struct GradientDescentRule {
  T* v;
  const T* gradient;
  T rate;
};

/// a = a · momentum + gradient; v −= a · rate, with Nesterov's form v −= gradient · rate + a · momentum ·
/// rate
template <typename T>
struct MomentumRule {
  T* v;
  T* a;
  const T* gradient;
  T rate;
  T momentum;
  bool use_nesterov;
};

/// a += gradient²; v −= gradient · rate / √a
template <typename T>
struct AdagradRule {
  T* v;
  T* a;
  const T* gradient;
  T rate;
};

/// m += (gradient − m) · one_minus_beta1; w += (gradient² − w) · one_minus_beta2; v −= m · rate / (√w +
/// epsilon)
template <typename T>
struct AdamRule {
  T* v;
  T* m;
  T* w;
  const T* gradient;
  T rate;
  T one_minus_beta1;
  T one_minus_beta2;
  T epsilon;
};

template <typename T>
using UpdateRule = std::variant<GradientDescentRule<T>, MomentumRule<T>, AdagradRule<T>, AdamRule<T>>;

/// Applies the rule to `count` elements, on as many threads as a kernel may use.
void apply_rule(const UpdateRule<float>& rule, std::int64_t count);
void apply_rule(const UpdateRule<double>& rule, std::int64_t count);

}  // namespace kolo::detail
