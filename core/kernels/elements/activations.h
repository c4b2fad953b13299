// Activations, as functors of an element on a GPU: the formulas of activation_formulas-inl.h with the
// library's functions. On the CPU Highway's are in their place (cpu/loops/activation_loops.cc).
#pragma once

#include <kolo/core/kernels/elements/host_device.h>
#include <kolo/core/kernels/elements/list.h>
#include <kolo/core/kernels/elements/numbers.h>

namespace kolo::elements {

#include <kolo/core/kernels/elements/activation_formulas-inl.h>

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
