// How the ranks of a communicator meet in node memory: rounds, in each of which every rank says something and
// hears all others.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <kolo/collectives/transport/node_memory.h>

namespace kolo {

/// Each rank owns a block of its node memory. In it lie kSlots
/// slots; round t uses slot t mod kSlots: a head and a payload, which it fills and then posts, and the
/// others read.
///
/// Nobody says that it has read: who posts round t has finished with the rounds up to t − kAhead, for that is
/// the rule for the ones who use the channel. So whoever has seen all ranks post t − kAhead, as it has when
/// it posts t itself, knows that round t − 2·kAhead is read by all, and its slot is free: kSlots = 2·kAhead.
///
/// One thread. All ranks use it for the same rounds.
class NodeChannel {
 public:
  static constexpr std::uint64_t kAhead = 2;
  static constexpr std::uint64_t kSlots = 2 * kAhead;
  static constexpr std::int64_t kHeadWords = 7;

  /// A cache line: what comes with it costs no second one.
  struct alignas(64) Head {
    std::atomic<std::uint64_t> round{0};  // released by post(), acquired by is_posted()
    std::array<std::uint64_t, kHeadWords> words{};
  };

  /// view: the ranks, in their order. Its block is not known to the others before connect(). Throws
  /// ResourceExhaustedError where node memory has no room for it.
  explicit NodeChannel(NodeView view);
  /// The other ranks may still be in their last round: the block is given back when all have let go.
  ~NodeChannel();
  NodeChannel(const NodeChannel&) = delete;
  NodeChannel& operator=(const NodeChannel&) = delete;

  std::int64_t own_offset() const { return own_offset_; }
  /// own_offset() of every rank. Once, before anything else.
  void connect(std::span<const std::int64_t> offsets);

  int rank() const { return view_.self(); }
  int size() const { return view_.size(); }
  /// Of each slot.
  std::int64_t payload_bytes() const { return payload_bytes_; }

  /// The number of the next round: it belongs to the caller.
  std::uint64_t next_round() { return ++last_round_; }
  Head& head(std::uint64_t round) { return head(rank(), round); }
  std::byte* payload(std::uint64_t round) { return payload(rank(), round); }
  /// The own ones of the round are final.
  void post(std::uint64_t round) { head(round).round.store(round, std::memory_order_release); }
  /// By all ranks: their heads and payloads may be read.
  bool is_posted(std::uint64_t round);
  const Head& head_of(int rank, std::uint64_t round) { return head(rank, round); }
  const std::byte* payload_of(int rank, std::uint64_t round) { return payload(rank, round); }
  /// To answer in: the rank reads it when this one has posted kAhead rounds more.
  std::byte* payload_for(int rank, std::uint64_t round) { return payload(rank, round); }

  /// Memory that all ranks see: its offset for the others, and theirs as this rank sees it.
  std::optional<std::int64_t> offset_of(const void* place, std::int64_t bytes) const {
    return view_.own().offset_of(place, bytes);
  }
  std::byte* at(int rank, std::int64_t offset) const { return view_.begin(rank) + offset; }

  /// Bytes on their way from one rank to another, for messages. Counters grow; each is its writer's.
  struct Pipe {
    std::atomic<std::uint64_t>* written;  // released by the sender, acquired by the receiver
    std::atomic<std::uint64_t>* read;     // released by the receiver, acquired by the sender
    std::byte* ring;                      // kPipeBytes
  };
  static constexpr std::uint64_t kPipeBytes = std::uint64_t{128} << 10;
  Pipe pipe(int from, int to);

 private:
  struct alignas(64) Counter {
    std::atomic<std::uint64_t> value{0};
  };
  // In this order in each block. departed is written by the others, each its own.
  struct Layout {
    std::int64_t departed, written, read;  // a Counter for each rank
    std::int64_t slots, slot_bytes;
    std::int64_t rings;
    std::int64_t bytes;
  };
  static Layout layout_for(int ranks, std::int64_t payload_bytes);

  Head& head(int rank, std::uint64_t round) {
    return *reinterpret_cast<Head*>(blocks_[rank] + layout_.slots + slot(round));
  }
  std::byte* payload(int rank, std::uint64_t round) {
    return blocks_[rank] + layout_.slots + slot(round) + static_cast<std::int64_t>(sizeof(Head));
  }
  std::int64_t slot(std::uint64_t round) const {
    return static_cast<std::int64_t>(round % kSlots) * layout_.slot_bytes;
  }
  std::atomic<std::uint64_t>& counter(int rank, std::int64_t row, int column) {
    return reinterpret_cast<Counter*>(blocks_[rank] + row)[column].value;
  }

  NodeView view_;
  std::int64_t payload_bytes_;
  Layout layout_;
  std::byte* own_block_;
  std::int64_t own_offset_;
  std::vector<std::byte*> blocks_;  // by rank
  std::uint64_t last_round_ = 0;
  int waits_for_ = 0;  // the first rank not seen in the round that is waited for
};

}  // namespace kolo
