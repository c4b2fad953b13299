// A collective written down as rounds of messages: what algorithms are built from whose steps follow each
// other. And what those that work with partners at distance 1, 2, 4, … share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/transport/point_to_point.h>

namespace kolo {

/// The messages of a round are under way together; the next round begins when they have arrived. Filled once,
/// before start(); what the messages and actions refer to lives until the operation is destroyed.
/// One thread at a time, as every Collective.
class Rounds final : public Collective {
 public:
  using Action = std::function<void()>;
  /// For the part of a message that has arrived: its first byte and how many.
  using PartAction = std::function<void(std::int64_t first_byte, std::int64_t bytes)>;

  /// A message is sent in parts of chunk_bytes (more for one of over 16 parts, at most 1 GiB), so that one is
  /// reduced while the next is on its way.
  Rounds(PointToPoint& network, std::int64_t chunk_bytes);

  /// Both into the last round; nothing is sent for no bytes. `on_part` runs for the parts in their order, and
  /// in the order of the round's receives, while the round's other messages may still be under way.
  void send(int to, std::span<const std::byte> bytes);
  void receive(int from, std::span<std::byte> bytes, PartAction on_part = {});
  /// Ends the last round; `then` runs when all its messages have arrived and left.
  void end_round(Action then = {});

  void start() override;
  Progress progress() override;

 private:
  struct Outgoing {
    int to;
    std::span<const std::byte> bytes;
  };
  struct Incoming {
    int from;
    std::span<std::byte> bytes;
    std::int64_t first_byte;  // in its message
    PartAction on_part;
  };
  struct Round {
    std::vector<Outgoing> sends;
    std::vector<Incoming> receives;
    Action then;
  };
  Round& last() { return rounds_.back(); }
  std::size_t part_bytes(std::size_t bytes) const;
  void post(const Round& round);
  bool finish_messages(const Round& round);

  PointToPoint& network_;
  const std::size_t chunk_bytes_;
  std::vector<Round> rounds_;
  std::size_t current_ = 0;
  bool posted_ = false;
  std::vector<PointToPoint::Request> send_requests_, receive_requests_;  // of the current round
  std::size_t sent_ = 0, received_ = 0;
};

/// The largest power of two that is not above `ranks` (≥ 1).
inline int power_of_two_below(int ranks) {
  int power = 1;
  while (power <= ranks / 2) power *= 2;
  return power;
}

/// Whether one of the ranks from the largest power of two on folds into `rank`.
inline bool takes_folded(int rank, int ranks) { return rank + power_of_two_below(ranks) < ranks; }

/// How many ranks' elements are in the partial result that `rank` has when the exchange comes to `distance`:
/// those of its block of so many ranks, and of the ranks that were folded into them.
inline int ranks_combined(int rank, int distance, int ranks) {
  const int first = rank / distance * distance;
  return distance + std::clamp(ranks - power_of_two_below(ranks) - first, 0, distance);
}

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

struct Section {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

struct Halves {
  Section kept, given;
};

/// Of a range that `rank` shares with rank ^ distance: the one whose bit is 0 keeps the lower half.
inline Halves halve(Section range, int rank, int distance) {
  const std::int64_t middle = range.begin + range.size() / 2;
  const Section lower{range.begin, middle}, upper{middle, range.end};
  return (rank & distance) == 0 ? Halves{lower, upper} : Halves{upper, lower};
}

/// The way back of a vector halving: halves[k] was shared with rank ^ 2^k, and what was given away returns.
/// bytes: of a Section, as a span.
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
