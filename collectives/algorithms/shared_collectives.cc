#include <kolo/collectives/algorithms/shared_collectives.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/read_in_place.h>
#include <kolo/collectives/reduce/reduce.h>
#include <kolo/collectives/transport/copy.h>

namespace kolo {

Progress RoundOperation::progress() {
  bool advanced = false;
  while (filled_ < rounds_ && filled_ < taken_ + ahead_) {
    last_round_ = channel_.next_round();
    fill(filled_, last_round_);
    channel_.post(last_round_);
    ++filled_;
    advanced = true;
  }
  if (taken_ == rounds_) return Progress::finished;
  const std::uint64_t round = last_round_ - static_cast<std::uint64_t>(filled_ - taken_ - 1);
  if (!is_seen_ && !channel_.is_posted(round)) return advanced ? Progress::advanced : Progress::none;
  is_seen_ = !take(taken_, round);
  if (is_seen_) return Progress::advanced;
  ++taken_;
  return taken_ == rounds_ ? Progress::finished : Progress::advanced;
}

namespace {

// Up to here a second copy costs less than a second meeting.
constexpr std::int64_t kShortGatheredBytes = std::int64_t{16} << 10;
// What progress() does before it returns.
constexpr std::int64_t kCopyTurnBytes = std::int64_t{512} << 10;
// Announced for a block or a buffer that is not in node memory, where no block begins at 0.
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
    decided_ = longest_ <= kShortGatheredBytes;
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
      const std::int64_t bytes = std::min(kCopyTurnBytes, length(blocks_[rank_]) - position_);
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

namespace {

// Up to here the second meeting of the way in place costs more than reducing everything everywhere.
constexpr std::int64_t kShortReducedBytes = std::int64_t{2} << 10;
// What goes to one rank through a slot: while it is read there the next is being written.
constexpr std::int64_t kPieceBytes = std::int64_t{16} << 10;
// What progress() does before it returns.
constexpr std::int64_t kReduceTurnBytes = std::int64_t{256} << 10;
constexpr std::int64_t kLine = 64;

constexpr auto kAhead = static_cast<std::int64_t>(NodeChannel::kAhead);

class SharedMemoryReduction final : public RoundOperation, public ReadInPlace {
 public:
  // begins: of each rank's share, and the end of the last. to_all: every rank gets all shares.
  SharedMemoryReduction(NodeChannel& channel, const TypedBuffer& buffer, std::vector<std::int64_t> begins,
                        ReduceOp op, double divisor, bool to_all)
      : RoundOperation(channel),
        buffer_(buffer),
        begins_(std::move(begins)),
        op_(op),
        divisor_(divisor),
        to_all_(to_all),
        element_bytes_(static_cast<std::int64_t>(size_of(buffer.dtype))),
        own_offset_(channel.offset_of(buffer.bytes, bytes_of(buffer.elements)).value_or(kOrdinary)),
        bases_(channel.size()),
        from_(channel.size()),
        to_(channel.size()) {}

  ReadInPlace* read_in_place() override { return this; }
  void ask_to_read(bool asks) override { asks_ = asks; }
  std::span<const std::byte* const> elements_of_ranks() const override {
    return way_ == Way::left ? std::span<const std::byte* const>(from_) : std::span<const std::byte* const>();
  }

 protected:
  void begin() override {
    if (buffer_.elements == 0) return;
    way_ = bytes_of(buffer_.elements) <= kShortReducedBytes ? Way::replicated : Way::undecided;
    set_rounds(1, false);
  }

  void fill(std::int64_t k, std::uint64_t round) override {
    switch (way_) {
      case Way::undecided:
        channel().head(round).words[0] = static_cast<std::uint64_t>(own_offset_);
        channel().head(round).words[1] = asks_ ? 1 : 0;
        break;
      case Way::left:
      case Way::in_place: break;
      case Way::replicated:
        copy_near(channel().payload(round), buffer_.bytes, bytes_of(buffer_.elements));
        break;
      case Way::in_shares: fill_shares(k - 1, round); break;
    }
  }

  bool take(std::int64_t k, std::uint64_t round) override {
    switch (way_) {
      case Way::undecided: decide(round); return way_ != Way::in_place;
      case Way::left: break;
      case Way::in_place: return k == 1 || reduce_in_place();
      case Way::replicated: take_whole(round); break;
      case Way::in_shares: take_shares(k - 1, round); break;
    }
    return true;
  }

 private:
  enum class Way { undecided, left, in_place, replicated, in_shares };

  int ranks() const { return channel().size(); }
  int own() const { return channel().rank(); }
  std::int64_t bytes_of(std::int64_t elements) const { return elements * element_bytes_; }
  std::int64_t elements_in(std::int64_t bytes) const { return bytes / kLine * kLine / element_bytes_; }
  std::byte* place(std::int64_t element) const { return buffer_.bytes + bytes_of(element); }

  // All ranks have heard the same, and so take the same way.
  void decide(std::uint64_t round) {
    bool all_in_node_memory = true, all_ask = true;
    for (int rank = 0; rank < ranks(); ++rank) {
      const std::uint64_t offset = channel().head_of(rank, round).words[0];
      all_in_node_memory = all_in_node_memory && offset != kOrdinary;
      all_ask = all_ask && channel().head_of(rank, round).words[1] != 0;
      bases_[rank] = channel().at(rank, static_cast<std::int64_t>(offset));
    }
    if (all_in_node_memory && all_ask) {
      way_ = Way::left;
      std::copy(bases_.begin(), bases_.end(), from_.begin());
    } else if (all_in_node_memory) {
      way_ = Way::in_place;
      position_ = begins_[own()];
    } else {
      share();
    }
  }

  // In place: a turn of the own share. When it is done the others are told so, and wait for, in round 1.
  bool reduce_in_place() {
    const std::int64_t end = begins_[own() + 1];
    const std::int64_t elements = std::min(elements_in(kReduceTurnBytes), end - position_);
    for (int rank = 0; rank < ranks(); ++rank) from_[rank] = to_[rank] = bases_[rank] + bytes_of(position_);
    if (!to_all_) to_[0] = place(position_);
    combine(to_all_ ? ranks() : 1, elements);
    position_ += elements;
    if (position_ < end) return false;
    set_rounds(2, false);
    return true;
  }

  // Replicated: every rank gives all elements, and combines all.
  void take_whole(std::uint64_t round) {
    for (int rank = 0; rank < ranks(); ++rank) from_[rank] = channel().payload_of(rank, round);
    from_[own()] = to_[0] = buffer_.bytes;
    combine(1, buffer_.elements);
  }

  // In shares, one piece of each a round, from round 1 on: a slot holds a piece for every other rank's share,
  // over which that rank writes the result. It has done so when it posts the round `lag_` later. The cache
  // lines go there and back, and are written again without another word between the caches.
  void share() {
    way_ = Way::in_shares;
    piece_ = elements_in(std::min(kPieceBytes, channel().payload_bytes() / ranks()));
    std::int64_t longest = 0;
    for (int rank = 0; rank < ranks(); ++rank) longest = std::max(longest, begins_[rank + 1] - begins_[rank]);
    const std::int64_t pieces = (longest + piece_ - 1) / piece_;
    lag_ = pieces > 1 ? kAhead : 1;
    set_rounds(1 + pieces + (to_all_ ? lag_ : 0), pieces > 1);
  }
  // Piece c of a rank's share: its first element, and how many.
  std::pair<std::int64_t, std::int64_t> piece_of(int rank, std::int64_t c) const {
    const std::int64_t begin = std::min(begins_[rank] + c * piece_, begins_[rank + 1]);
    return {begin, std::min(piece_, begins_[rank + 1] - begin)};
  }

  void fill_shares(std::int64_t c, std::uint64_t round) {
    for (int rank = 0; rank < ranks(); ++rank) {
      const auto [begin, elements] = piece_of(rank, c);
      if (rank != own() && elements > 0)
        copy_near(channel().payload(round) + rank * bytes_of(piece_), place(begin), bytes_of(elements));
    }
  }

  void take_shares(std::int64_t c, std::uint64_t round) {
    const auto [begin, elements] = piece_of(own(), c);
    if (elements > 0) {
      for (int rank = 0; rank < ranks(); ++rank)
        from_[rank] = to_[rank] = channel().payload_for(rank, round) + own() * bytes_of(piece_);
      from_[own()] = to_[own()] = place(begin);
      if (!to_all_) to_[0] = place(begin);
      combine(to_all_ ? ranks() : 1, elements);
    }
    for (int rank = 0; rank < ranks() && to_all_ && c >= lag_; ++rank) {
      const auto [first, count] = piece_of(rank, c - lag_);
      if (rank != own() && count > 0)
        take_over(place(first),
                  channel().payload(round - static_cast<std::uint64_t>(lag_)) + rank * bytes_of(piece_),
                  bytes_of(count));
    }
  }

  void combine(int outs, std::int64_t elements) {
    reduce_many(op_, buffer_.dtype, std::span(to_).first(outs), from_, elements, divisor_);
  }

  const TypedBuffer buffer_;
  const std::vector<std::int64_t> begins_;
  const ReduceOp op_;
  const double divisor_;
  const bool to_all_;
  const std::int64_t element_bytes_;
  const std::int64_t own_offset_;
  bool asks_ = false;
  Way way_ = Way::undecided;
  std::int64_t piece_ = 1;     // elements
  std::int64_t lag_ = 1;       // in shares: how many rounds later a piece's result is there
  std::int64_t position_ = 0;  // in place: the next element
  std::vector<std::byte*> bases_;
  std::vector<const std::byte*> from_;
  std::vector<std::byte*> to_;
};

// Shares begin at cache lines of the buffer, so that no two ranks write to one.
std::vector<std::int64_t> even_shares(const TypedBuffer& buffer, int ranks) {
  const std::int64_t per_line = kLine / static_cast<std::int64_t>(size_of(buffer.dtype));
  const std::int64_t lines = (buffer.elements + per_line - 1) / per_line;
  std::vector<std::int64_t> begins;
  for (int rank = 0; rank <= ranks; ++rank)
    begins.push_back(std::min(lines * rank / ranks * per_line, buffer.elements));
  return begins;
}

}  // namespace

std::shared_ptr<Collective> shared_memory_allreduce(NodeChannel& channel, const TypedBuffer& buffer,
                                                    ReduceOp op, double divisor) {
  return std::make_shared<SharedMemoryReduction>(channel, buffer, even_shares(buffer, channel.size()), op,
                                                 divisor, true);
}

std::shared_ptr<Collective> shared_memory_reduce_scatter(NodeChannel& channel, const TypedBuffer& buffer,
                                                         std::span<const std::int64_t> counts, ReduceOp op,
                                                         double divisor) {
  std::vector<std::int64_t> begins = {0};
  for (const std::int64_t count : counts) begins.push_back(begins.back() + count);
  return std::make_shared<SharedMemoryReduction>(channel, buffer, std::move(begins), op, divisor, false);
}

namespace {

class Carried final : public Collective {
 public:
  Carried(std::shared_ptr<Collective> operation, const SharedMemoryPointToPoint& network)
      : operation_(std::move(operation)), network_(network) {}
  void start() override { operation_->start(); }
  Progress progress() override {
    const Progress progress = operation_->progress();
    const bool moved = std::exchange(moved_, network_.moved_bytes()) != network_.moved_bytes();
    return progress == Progress::none && moved ? Progress::advanced : progress;
  }
  const char* phase() const override { return operation_->phase(); }
  bool needs_comm_thread() const override { return false; }

 private:
  const std::shared_ptr<Collective> operation_;
  const SharedMemoryPointToPoint& network_;
  std::uint64_t moved_ = 0;
};

}  // namespace

std::shared_ptr<Collective> NodeCollectives::carried(std::shared_ptr<Collective> operation) {
  return std::make_shared<Carried>(std::move(operation), network_);
}

std::shared_ptr<Collective> NodeCollectives::allreduce(const TypedBuffer& buffer, ReduceOp op,
                                                       double divisor) {
  return shared_memory_allreduce(*channel_, buffer, op, divisor);
}

std::shared_ptr<Collective> NodeCollectives::reduce_scatter(const TypedBuffer& buffer,
                                                            std::span<const std::int64_t> counts, ReduceOp op,
                                                            double divisor) {
  return shared_memory_reduce_scatter(*channel_, buffer, counts, op, divisor);
}

std::shared_ptr<Collective> NodeCollectives::allgather(std::span<const std::span<std::byte>> blocks) {
  return shared_memory_allgather(*channel_, blocks);
}

std::shared_ptr<Collective> NodeCollectives::broadcast(std::span<std::byte> bytes, int root) {
  return shared_memory_broadcast(*channel_, bytes, root);
}

std::shared_ptr<Collective> NodeCollectives::barrier() { return shared_memory_barrier(*channel_); }

}  // namespace kolo
