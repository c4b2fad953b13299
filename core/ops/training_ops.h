// One fused update of a variable for each optimizer's rule. Users call optimizers; those who write one of
// their own may build on these. Every scalar has the variable's type. The result is the variable's new value.
#pragma once

#include <kolo/core/ops/variable.h>

namespace kolo {

/// v −= gradient · learning_rate.
Output apply_gradient_descent(const Scope& s, const Variable& v, Output learning_rate, Output gradient);

struct MomentumScalars {
  Output learning_rate;
  Output momentum;
};
/// a = a · momentum + gradient; then v −= a · learning_rate, or with Nesterov's momentum
/// v −= gradient · learning_rate + a · momentum · learning_rate.
Output apply_momentum(const Scope& s, const Variable& v, const Variable& a, const MomentumScalars& scalars,
                      Output gradient, bool use_nesterov);

/// a += gradient²; v −= learning_rate · gradient / √a.
Output apply_adagrad(const Scope& s, const Variable& v, const Variable& a, Output learning_rate,
                     Output gradient);

struct AdamScalars {
  Output beta1_power;  // beta1 to the number of this update, counted from 1
  Output beta2_power;
  Output learning_rate;
  Output beta1;
  Output beta2;
  Output epsilon;
};
/// rate = learning_rate · √(1 − beta2_power) / (1 − beta1_power); m += (gradient − m)(1 − beta1);
/// w += (gradient² − w)(1 − beta2); v −= m · rate / (√w + epsilon).
Output apply_adam(const Scope& s, const Variable& v, const Variable& m, const Variable& w,
                  const AdamScalars& scalars, Output gradient);

}  // namespace kolo
