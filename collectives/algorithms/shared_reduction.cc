#include <kolo/collectives/algorithms/shared_reduction.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/shared_round.h>
#include <kolo/collectives/reduce/reduce_many.h>
#include <kolo/collectives/transport/copy.h>

namespace kolo {
namespace {

// Up to here the second meeting of the way in place costs more than reducing everything everywhere.
constexpr std::int64_t kShortBytes = std::int64_t{2} << 10;
// What goes to one rank through a slot: while it is read there the next is being written.
constexpr std::int64_t kPieceBytes = std::int64_t{16} << 10;
// What progress() does before it returns.
constexpr std::int64_t kTurnBytes = std::int64_t{256} << 10;
constexpr std::int64_t kLine = 64;
// Announced for a buffer that is not in node memory, where no block begins at 0.
constexpr std::uint64_t kOrdinary = 0;

constexpr auto kAhead = static_cast<std::int64_t>(NodeChannel::kAhead);

class SharedMemoryReduction final : public RoundOperation {
 public:
  // begins: of each rank's share, and the end of the last. to_all: every rank gets all shares.
  SharedMemoryReduction(NodeChannel& channel, const TypedBuffer& buffer, std::vector<std::int64_t> begins,
                        ReduceOp op, int divisor, bool to_all)
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

 protected:
  void begin() override {
    if (buffer_.elements == 0) return;
    way_ = bytes_of(buffer_.elements) <= kShortBytes ? Way::replicated : Way::undecided;
    set_rounds(1, false);
  }

  void fill(std::int64_t k, std::uint64_t round) override {
    switch (way_) {
      case Way::undecided: channel().head(round).words[0] = static_cast<std::uint64_t>(own_offset_); break;
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
      case Way::in_place: return k == 1 || reduce_in_place();
      case Way::replicated: take_whole(round); break;
      case Way::in_shares: take_shares(k - 1, round); break;
    }
    return true;
  }

 private:
  enum class Way { undecided, in_place, replicated, in_shares };

  int ranks() const { return channel().size(); }
  int own() const { return channel().rank(); }
  std::int64_t bytes_of(std::int64_t elements) const { return elements * element_bytes_; }
  std::int64_t elements_in(std::int64_t bytes) const { return bytes / kLine * kLine / element_bytes_; }
  std::byte* place(std::int64_t element) const { return buffer_.bytes + bytes_of(element); }

  // All ranks have heard the same, and so take the same way.
  void decide(std::uint64_t round) {
    bool all_in_node_memory = true;
    for (int rank = 0; rank < ranks(); ++rank) {
      const std::uint64_t offset = channel().head_of(rank, round).words[0];
      all_in_node_memory = all_in_node_memory && offset != kOrdinary;
      bases_[rank] = channel().at(rank, static_cast<std::int64_t>(offset));
    }
    if (all_in_node_memory) {
      way_ = Way::in_place;
      position_ = begins_[own()];
    } else {
      share();
    }
  }

  // In place: a turn of the own share. When it is done the others are told so, and wait for, in round 1.
  bool reduce_in_place() {
    const std::int64_t end = begins_[own() + 1];
    const std::int64_t elements = std::min(elements_in(kTurnBytes), end - position_);
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
  const int divisor_;
  const bool to_all_;
  const std::int64_t element_bytes_;
  const std::int64_t own_offset_;
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
                                                    ReduceOp op, int divisor) {
  return std::make_shared<SharedMemoryReduction>(channel, buffer, even_shares(buffer, channel.size()), op,
                                                 divisor, true);
}

std::shared_ptr<Collective> shared_memory_reduce_scatter(NodeChannel& channel, const TypedBuffer& buffer,
                                                         std::span<const std::int64_t> counts, ReduceOp op,
                                                         int divisor) {
  std::vector<std::int64_t> begins = {0};
  for (const std::int64_t count : counts) begins.push_back(begins.back() + count);
  return std::make_shared<SharedMemoryReduction>(channel, buffer, std::move(begins), op, divisor, false);
}

}  // namespace kolo
