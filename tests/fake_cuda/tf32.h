// What the fake libraries make of factors where they compute in TF32.
#pragma once

#include <bit>
#include <cstdint>

namespace kolo::fake_cuda {

/// With the 10 bits of TF32's mantissa; those below are dropped.
inline float to_tf32(float x) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffffe000); }

}  // namespace kolo::fake_cuda
