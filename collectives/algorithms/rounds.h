// A collective written down as rounds of messages: what algorithms are built from whose steps follow each
// other.
#pragma once

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

}  // namespace kolo
