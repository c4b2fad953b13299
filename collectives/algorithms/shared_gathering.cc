#include <kolo/collectives/algorithms/shared_gathering.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/shared_round.h>
#include <kolo/collectives/transport/copy.h>

namespace kolo {
namespace {

// Up to here a second copy costs less than a second meeting.
constexpr std::int64_t kShortBytes = std::int64_t{16} << 10;
// What progress() does before it returns.
constexpr std::int64_t kTurnBytes = std::int64_t{512} << 10;
// Announced for a block that is not in node memory, where no block begins at 0.
constexpr std::uint64_t kOrdinary = 0;

class SharedMemoryGathering final : public RoundOperation {
 public:
  SharedMemoryGathering(NodeChannel& channel, std::vector<std::span<std::byte>> blocks)
      : RoundOperation(channel), blocks_(std::move(blocks)), offsets_(blocks_.size()) {
    for (const auto& block : blocks_) longest_ = std::max(longest_, length(block));
    const auto& own = blocks_[channel.rank()];
    own_offset_ = channel.offset_of(own.data(), length(own)).value_or(kOrdinary);
  }

 protected:
  void begin() override {
    decided_ = longest_ <= kShortBytes;
    first_ = decided_ ? 0 : 1;
    std::fill(offsets_.begin(), offsets_.end(), kOrdinary);
    set_rounds(1, false);
  }

  void fill(std::int64_t k, std::uint64_t round) override {
    if (k < first_) {
      channel().head(round).words[0] = static_cast<std::uint64_t>(own_offset_);
    } else if (offsets_[channel().rank()] == kOrdinary) {
      const auto piece = piece_of(channel().rank(), k - first_);
      copy_near(channel().payload(round), piece.data(), length(piece));
    }
  }

  bool take(std::int64_t k, std::uint64_t round) override {
    if (k < first_) return take_in_place(round);
    for (int rank = 0; rank < channel().size(); ++rank) {
      if (rank == channel().rank() || offsets_[rank] != kOrdinary) continue;
      const auto piece = piece_of(rank, k - first_);
      copy_near(piece.data(), channel().payload_of(rank, round), length(piece));
    }
    return true;
  }

 private:
  static std::int64_t length(std::span<std::byte> block) { return static_cast<std::int64_t>(block.size()); }

  std::span<std::byte> piece_of(int rank, std::int64_t c) const {
    const auto& block = blocks_[rank];
    const auto begin = std::min(block.size(), static_cast<std::size_t>(c * channel().payload_bytes()));
    return block.subspan(begin,
                         std::min(block.size() - begin, static_cast<std::size_t>(channel().payload_bytes())));
  }

  // The blocks that lie in node memory, a turn at a time; then the others' rounds. At least one follows: who
  // posts it has read, so the blocks are their owners' again.
  bool take_in_place(std::uint64_t round) {
    if (!decided_) {
      for (int rank = 0; rank < channel().size(); ++rank)
        offsets_[rank] = channel().head_of(rank, round).words[0];
      decided_ = true;
      rank_ = 0;
      position_ = 0;
    }
    if (copy_turn()) return false;
    std::int64_t rounds = 1;
    for (int rank = 0; rank < channel().size(); ++rank)
      if (offsets_[rank] == kOrdinary)
        rounds = std::max(
            rounds, (length(blocks_[rank]) + channel().payload_bytes() - 1) / channel().payload_bytes());
    set_rounds(first_ + rounds, true);
    return true;
  }

  // False when nothing is left.
  bool copy_turn() {
    for (; rank_ < channel().size(); ++rank_, position_ = 0) {
      const std::int64_t bytes = std::min(kTurnBytes, length(blocks_[rank_]) - position_);
      if (rank_ == channel().rank() || offsets_[rank_] == kOrdinary || bytes == 0) continue;
      copy_near(blocks_[rank_].data() + position_,
                channel().at(rank_, static_cast<std::int64_t>(offsets_[rank_]) + position_), bytes);
      position_ += bytes;
      return true;
    }
    return false;
  }

  const std::vector<std::span<std::byte>> blocks_;
  std::int64_t longest_ = 0;
  std::int64_t own_offset_ = 0;
  std::vector<std::uint64_t> offsets_;  // announced, by rank
  bool decided_ = false;
  std::int64_t first_ = 0;  // round of the first piece
  int rank_ = 0;            // in place: whose block, and how far
  std::int64_t position_ = 0;
};

}  // namespace

std::shared_ptr<Collective> shared_memory_allgather(NodeChannel& channel,
                                                    std::span<const std::span<std::byte>> blocks) {
  return std::make_shared<SharedMemoryGathering>(
      channel, std::vector<std::span<std::byte>>(blocks.begin(), blocks.end()));
}

std::shared_ptr<Collective> shared_memory_broadcast(NodeChannel& channel, std::span<std::byte> bytes,
                                                    int root) {
  std::vector<std::span<std::byte>> blocks(channel.size());
  blocks[root] = bytes;
  return std::make_shared<SharedMemoryGathering>(channel, std::move(blocks));
}

std::shared_ptr<Collective> shared_memory_barrier(NodeChannel& channel) {
  return std::make_shared<SharedMemoryGathering>(channel, std::vector<std::span<std::byte>>(channel.size()));
}

}  // namespace kolo
