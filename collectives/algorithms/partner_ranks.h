// Powers of two among ranks, and the halves of a vector that partners share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <kolo/collectives/algorithms/rounds.h>

namespace kolo {

/// The largest power of two that is not above `ranks` (≥ 1).
inline int power_of_two_below(int ranks) {
  int power = 1;
  while (power <= ranks / 2) power *= 2;
  return power;
}

/// Whether one of the ranks from the largest power of two on folds into `rank`.
inline bool takes_folded(int rank, int ranks) { return rank + power_of_two_below(ranks) < ranks; }

/// The rounds of an exchange that works among the ranks below `power`, the largest power of two, alone: the
/// others give `all` to the rank that is so far below them, and get the result. take(from) adds the round
/// that receives and combines a folded rank's elements; exchange(power) those of the exchange.
template <class Take, class Exchange>
void fold_around(Rounds& rounds, int rank, int ranks, std::span<std::byte> all, const Take& take,
                 const Exchange& exchange) {
  const int power = power_of_two_below(ranks);
  if (rank >= power) {
    rounds.send(rank - power, all);
    rounds.receive(rank - power, all);  // comes after everything sent has been read
    rounds.end_round();
    return;
  }
  if (takes_folded(rank, ranks)) take(rank + power);
  exchange(power);
  if (takes_folded(rank, ranks)) {
    rounds.send(rank + power, all);
    rounds.end_round();
  }
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
