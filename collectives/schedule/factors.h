// Gradients that are products xᵀ · dy, of matrices x [rows, inputs] and dy [rows, outputs] that are far
// smaller than the product: what a dense layer's weights have. Ranks that see each other's memory then need
// not write whole gradients that others read: the sum over the ranks is the product of all their rows.
#pragma once

#include <cstdint>
#include <memory>

#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

/// What is done with all ranks' factors.
enum class FactorsUse : std::int64_t {
  none,      // each rank makes its own gradient
  in_parts,  // each rank makes a part of the sum of all gradients, as many rows of it as the others
  whole      // each rank's update makes all gradients for itself
};

/// Of one gradient on this rank, in a step.
struct OwnFactors {
  FactorsUse use = FactorsUse::none;
  std::int64_t rows = 0;
  std::shared_ptr<Buffer> memory = nullptr;  // x and, behind it, dy
};

}  // namespace kolo::detail
