// Powers of two among ranks, and the halves of a vector that partners share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <kolo/collectives/algorithms/rounds.h>

namespace kolo {

/// The largest power of two that is not above `ranks` (≥ 1).
inline int power_of_two_below(int ranks) {
  int power = 1;
  while (power <= ranks / 2) power *= 2;
  return power;
}

struct ElementRange {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

struct Halves {
  ElementRange kept, given;
};

/// Of a range that `rank` shares with rank ^ distance: the one whose bit is 0 keeps the lower half.
inline Halves halve(ElementRange range, int rank, int distance) {
  const std::int64_t middle = range.begin + range.size() / 2;
  const ElementRange lower{range.begin, middle}, upper{middle, range.end};
  return (rank & distance) == 0 ? Halves{lower, upper} : Halves{upper, lower};
}

/// The way back of a vector halving: halves[k] was shared with rank ^ 2^k, and what was given away returns.
/// bytes: of an ElementRange, as a span.
template <class Bytes>
void add_doubling(Rounds& rounds, int rank, const std::vector<Halves>& halves, const Bytes& bytes) {
  for (std::size_t step = halves.size(); step-- > 0;) {
    const int partner = rank ^ (1 << step);
    rounds.send(partner, bytes(halves[step].kept));
    rounds.receive(partner, bytes(halves[step].given));
    rounds.end_round();
  }
}

}  // namespace kolo
