#include <kolo/collectives/algorithms/ring.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/algorithms/partial_results.h>

namespace kolo {
namespace {

// Chunks under way in each direction: enough to send one while the one before it is reduced.
constexpr int kRingWindow = 4;

struct Segment {
  std::byte* begin;
  std::int64_t elements;
};

enum class Phases { both, reduce_scatter, allgather };

// The buffer has one segment for each of n ranks (docs/pictures/ring.svg draws four). In each step a rank
// sends one segment to the right and receives another from the left. In the first n−1 steps it adds what
// arrives to its own elements of that segment, and sends the sum on in the next step. Segment r is then
// complete on rank r. In the other n−1 steps the complete segments go around once more and replace what is
// there. A segment travels in chunks, so that a rank sends one chunk of a sum while the next one arrives.
//
// In numbers: in step s = 0, 1, …, 2n−3 rank r sends segment r−s−1 and receives segment r−s−2, all modulo n.
// Every step has the same number C of chunks, so one number counts messages: message m is chunk m mod C of
// step m div C. What message m carries is what message m−C brought.
class Ring final : public Collective {
 public:
  /// partial: where something is reduced.
  Ring(PointToPoint& network, std::vector<Segment> segments, std::int64_t element_bytes,
       std::optional<PartialResults> partial, Phases phases, std::int64_t chunk_bytes)
      : network_(network),
        segments_(std::move(segments)),
        partial_(partial),
        ranks_(network.size()),
        element_bytes_(element_bytes) {
    std::int64_t longest = 0;
    for (const Segment& segment : segments_) longest = std::max(longest, segment.elements);
    chunk_elements_ = std::max<std::int64_t>(1, std::min(chunk_bytes / element_bytes_, longest));
    chunks_ = (longest + chunk_elements_ - 1) / chunk_elements_;
    if (phases == Phases::allgather) first_ = (ranks_ - 1) * chunks_;
    if (ranks_ > 1) end_ = (phases == Phases::reduce_scatter ? 1 : 2) * (ranks_ - 1) * chunks_;
    if (phases != Phases::allgather)
      scratch_.resize(static_cast<std::size_t>(kRingWindow * chunk_elements_ * element_bytes_));
  }

  void start() override { receives_posted_ = received_ = sends_posted_ = sent_ = first_; }

  Progress progress() override {
    bool advanced = false;
    while (step()) advanced = true;
    if (received_ == end_ && sent_ == end_) return Progress::finished;
    return advanced ? Progress::advanced : Progress::none;
  }
  const char* phase() const override {
    if (received_ == end_ && sent_ == end_) return nullptr;
    return received_ < (ranks_ - 1) * chunks_ ? "reduce-scatter" : "all-gather";
  }

 private:
  struct Chunk {
    std::byte* begin;
    std::int64_t elements;
  };

  // Chunk m mod C of the segment that lies `behind` places left of this rank's own. Shorter segments end in
  // empty chunks, which are not sent.
  Chunk chunk(std::int64_t message, std::int64_t behind) const {
    const Segment& segment = segments_[(network_.rank() - behind % ranks_ + ranks_) % ranks_];
    const std::int64_t first = std::min(message % chunks_ * chunk_elements_, segment.elements);
    return {segment.begin + first * element_bytes_, std::min(chunk_elements_, segment.elements - first)};
  }
  Chunk outgoing(std::int64_t message) const { return chunk(message, message / chunks_ + 1); }
  Chunk incoming(std::int64_t message) const { return chunk(message, message / chunks_ + 2); }
  bool reduces(std::int64_t message) const { return message < (ranks_ - 1) * chunks_; }
  std::byte* scratch(std::int64_t message) {
    return scratch_.data() + message % kRingWindow * chunk_elements_ * element_bytes_;
  }

  // Each of the four things that can go on, once; false if none can.
  bool step() {
    const bool receive_posted = post_receive();
    const bool send_posted = post_send();
    const bool received = finish_receive();
    const bool sent = finish_send();
    return receive_posted || send_posted || received || sent;
  }

  bool post_receive() {
    const std::int64_t m = receives_posted_;
    if (m == end_ || m == received_ + kRingWindow) return false;
    // A final chunk takes the place of a partial sum that must have left.
    if (!reduces(m) && first_ == 0 && sent_ <= m - (ranks_ - 1) * chunks_) return false;
    const Chunk in = incoming(m);
    std::byte* to = reduces(m) ? scratch(m) : in.begin;
    receives_[m % kRingWindow] = in.elements == 0 ? kNothing : network_.receive(left(), bytes(to, in));
    ++receives_posted_;
    return true;
  }

  bool post_send() {
    const std::int64_t m = sends_posted_;
    if (m == end_ || m == sent_ + kRingWindow || m >= received_ + chunks_) return false;
    const Chunk out = outgoing(m);
    sends_[m % kRingWindow] = out.elements == 0 ? kNothing : network_.send(right(), bytes(out.begin, out));
    ++sends_posted_;
    return true;
  }

  bool finish_receive() {
    const std::int64_t m = received_;
    if (m == receives_posted_) return false;
    const auto request = receives_[m % kRingWindow];
    if (request != kNothing && !network_.test(request)) return false;
    if (reduces(m)) {
      const Chunk in = incoming(m);
      const int come = static_cast<int>(m / chunks_) + 1;  // ranks whose elements are in it
      if (come == ranks_ - 1) partial_->finish(in.begin, 1, scratch(m), come, in.elements);
      else partial_->combine(in.begin, 1, scratch(m), come, in.elements);
    }
    ++received_;
    return true;
  }

  bool finish_send() {
    if (sent_ == sends_posted_) return false;
    const auto request = sends_[sent_ % kRingWindow];
    if (request != kNothing && !network_.test(request)) return false;
    ++sent_;
    return true;
  }

  int left() const { return static_cast<int>((network_.rank() + ranks_ - 1) % ranks_); }
  int right() const { return static_cast<int>((network_.rank() + 1) % ranks_); }
  std::span<std::byte> bytes(std::byte* begin, const Chunk& chunk) const {
    return {begin, static_cast<std::size_t>(chunk.elements * element_bytes_)};
  }

  static constexpr PointToPoint::Request kNothing = -1;

  PointToPoint& network_;
  const std::vector<Segment> segments_;
  const std::optional<PartialResults> partial_;
  const std::int64_t ranks_;
  const std::int64_t element_bytes_;
  std::int64_t chunk_elements_ = 1;
  std::int64_t chunks_ = 0;           // C
  std::int64_t first_ = 0, end_ = 0;  // messages in each direction
  std::vector<std::byte> scratch_;
  std::int64_t receives_posted_ = 0, received_ = 0;
  std::int64_t sends_posted_ = 0, sent_ = 0;
  std::array<PointToPoint::Request, kRingWindow> receives_{}, sends_{};
};

std::vector<Segment> consecutive(const TypedBuffer& buffer, std::span<const std::int64_t> counts) {
  std::vector<Segment> segments;
  std::byte* begin = buffer.bytes;
  for (const std::int64_t elements : counts) {
    segments.push_back({begin, elements});
    begin += elements * static_cast<std::int64_t>(size_of(buffer.dtype));
  }
  return segments;
}

std::shared_ptr<Collective> reducing_ring(const AlgorithmContext& context, const TypedBuffer& buffer,
                                          std::span<const std::int64_t> counts, ReduceOp op, Phases phases) {
  check_reducible(op, buffer.dtype);
  return std::make_shared<Ring>(context.network, consecutive(buffer, counts),
                                static_cast<std::int64_t>(size_of(buffer.dtype)),
                                PartialResults(context, buffer, op), phases, context.chunk_bytes);
}

const RegisterAllreduce ring("ring", ring_allreduce);

}  // namespace

std::shared_ptr<Collective> ring_allreduce(const AlgorithmContext& context, const TypedBuffer& buffer,
                                           ReduceOp op) {
  const std::int64_t ranks = context.network.size();
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), buffer.elements / ranks);
  for (std::int64_t rank = 0; rank < buffer.elements % ranks; ++rank) ++counts[rank];
  return reducing_ring(context, buffer, counts, op, Phases::both);
}

std::shared_ptr<Collective> ring_reduce_scatter(const AlgorithmContext& context, const TypedBuffer& buffer,
                                                std::span<const std::int64_t> counts, ReduceOp op) {
  return reducing_ring(context, buffer, counts, op, Phases::reduce_scatter);
}

std::shared_ptr<Collective> ring_allgather(PointToPoint& network,
                                           std::span<const std::span<std::byte>> blocks,
                                           std::int64_t chunk_bytes) {
  std::vector<Segment> segments;
  for (const auto block : blocks) segments.push_back({block.data(), static_cast<std::int64_t>(block.size())});
  return std::make_shared<Ring>(network, std::move(segments), 1, std::nullopt, Phases::allgather,
                                chunk_bytes);
}

}  // namespace kolo
