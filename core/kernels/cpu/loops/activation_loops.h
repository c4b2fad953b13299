// The inner loops of activations, compiled once for each instruction set and chosen at run time.
#pragma once

#include <cstdint>
#include <string_view>

#include <kolo/core/tensor/dtype.h>

namespace kolo::detail {

/// y[i] = f(x[i]); y may be x.
using ActivationLoop = void (*)(const void* x, double alpha, void* y, std::int64_t count);
/// dx[i] = dy[i] · f′(x[i]); dx may be dy or x.
using ActivationGradLoop = void (*)(const void* dy, const void* x, double alpha, void* dx,
                                    std::int64_t count);

/// For the processor this runs on. activation: a name of elements::Activations. f32 and f64, null for other
/// types and names.
ActivationLoop activation_loop(std::string_view activation, DType type);
ActivationGradLoop activation_grad_loop(std::string_view activation, DType type);

}  // namespace kolo::detail
