// A number of a step that the host chooses, for work on a device that is the same in every step but for it.
#pragma once

#include <cstdint>

namespace kolo {

struct StepNumber {
  std::uint64_t* at;  // where the work reads it, in the device's memory
  std::uint64_t value;
};

}  // namespace kolo
