// From the ops' sliding windows to those of the launch functions.
#pragma once

#include <array>
#include <string>

#include <kolo/core/kernels/cuda/launch_windows.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/convolution.h>

namespace kolo::cuda {

/// images: [N,C,H,W]. Throws InvalidArgumentError where a number does not fit in 31 bits.
std::array<WindowSide, 2> window_sides(const KernelInit& init, const Shape& images, const RowsCols& window);

/// images and results of the convolution, whichever of the op's values they are; input 1 are the weights.
/// Throws as window_sides.
Convolution convolution_of(const KernelInit& init, const Shape& images, const Shape& results);

}  // namespace kolo::cuda
