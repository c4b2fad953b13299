// Powers of two among ranks.
#pragma once

namespace kolo {

/// The largest power of two that is not above `ranks` (≥ 1).
inline int power_of_two_below(int ranks) {
  int power = 1;
  while (power <= ranks / 2) power *= 2;
  return power;
}

}  // namespace kolo
