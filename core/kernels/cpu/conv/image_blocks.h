// In which blocked order convolutions are fast on this machine.
#pragma once

#include <cstdint>

namespace kolo {

/// Channels of a block (core/ops/blocked.h): as many as oneDNN's code for this processor computes with at
/// once. 0 where it has none.
std::int64_t image_block();

}  // namespace kolo
