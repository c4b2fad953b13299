#include <kolo/collectives/algorithms/ring.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/reduce.h>

namespace kolo {
namespace {

// Chunks under way in each direction: enough to send one while the one before it is reduced.
constexpr int kWindow = 4;

// The way of rank r's messages. In step s = 0, 1, …, 2n−3 it sends segment r−s to the right and receives
// segment r−s−1 from the left (all modulo n); in the first n−1 steps what comes is added to what is here, in
// the others it is final and replaces it. Every step has the same number of chunks, so that messages are
// counted by one number: message m is chunk m mod C of step m div C. What message m carries is what message
// m−C brought.
class RingAllreduce final : public Collective {
 public:
  RingAllreduce(const AlgorithmContext& context, const TypedBuffer& buffer, ReduceOp op)
      : network_(context.network),
        buffer_(buffer),
        op_(op),
        divisor_(context.divisor()),
        ranks_(network_.size()),
        element_bytes_(static_cast<std::int64_t>(size_of(buffer.dtype))) {
    const std::int64_t longest_segment = (buffer.elements + ranks_ - 1) / ranks_;
    chunk_elements_ =
        std::max<std::int64_t>(1, std::min(context.chunk_bytes / element_bytes_, longest_segment));
    chunks_ = (longest_segment + chunk_elements_ - 1) / chunk_elements_;
    messages_ = ranks_ > 1 ? 2 * (ranks_ - 1) * chunks_ : 0;
    scratch_.resize(static_cast<std::size_t>(kWindow * chunk_elements_ * element_bytes_));
  }

  void start() override { receives_posted_ = received_ = sends_posted_ = sent_ = 0; }

  Progress progress() override {
    bool advanced = false;
    while (step()) advanced = true;
    if (received_ == messages_ && sent_ == messages_) return Progress::finished;
    return advanced ? Progress::advanced : Progress::none;
  }
  const char* phase() const override {
    if (received_ == messages_ && sent_ == messages_) return nullptr;
    return received_ < (ranks_ - 1) * chunks_ ? "reduce-scatter" : "all-gather";
  }

 private:
  struct Chunk {
    std::int64_t first;  // element
    std::int64_t elements;
  };

  std::int64_t segment_begin(std::int64_t segment) const {
    const std::int64_t whole = buffer_.elements / ranks_, rest = buffer_.elements % ranks_;
    return segment * whole + std::min(segment, rest);
  }

  // Chunk m mod C of the segment that lies `behind` places left of this rank's own. Shorter segments end in
  // empty chunks, which are not sent.
  Chunk chunk(std::int64_t message, std::int64_t behind) const {
    const std::int64_t segment = (network_.rank() - behind % ranks_ + ranks_) % ranks_;
    const std::int64_t end = segment_begin(segment + 1);
    const std::int64_t first = std::min(segment_begin(segment) + message % chunks_ * chunk_elements_, end);
    return {first, std::min(chunk_elements_, end - first)};
  }
  Chunk outgoing(std::int64_t message) const { return chunk(message, message / chunks_); }
  Chunk incoming(std::int64_t message) const { return chunk(message, message / chunks_ + 1); }
  bool reduces(std::int64_t message) const { return message < (ranks_ - 1) * chunks_; }
  std::byte* place(const Chunk& chunk) const { return buffer_.bytes + chunk.first * element_bytes_; }
  std::byte* scratch(std::int64_t message) {
    return scratch_.data() + message % kWindow * chunk_elements_ * element_bytes_;
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
    if (m == messages_ || m == received_ + kWindow) return false;
    // A final chunk takes the place of a partial sum that must have left.
    if (!reduces(m) && sent_ <= m - (ranks_ - 1) * chunks_) return false;
    const Chunk in = incoming(m);
    std::byte* to = reduces(m) ? scratch(m) : place(in);
    receives_[m % kWindow] = in.elements == 0 ? kNothing : network_.receive(left(), bytes(to, in));
    ++receives_posted_;
    return true;
  }

  bool post_send() {
    const std::int64_t m = sends_posted_;
    if (m == messages_ || m == sent_ + kWindow || m >= received_ + chunks_) return false;
    const Chunk out = outgoing(m);
    sends_[m % kWindow] = out.elements == 0 ? kNothing : network_.send(right(), bytes(place(out), out));
    ++sends_posted_;
    return true;
  }

  bool finish_receive() {
    const std::int64_t m = received_;
    if (m == receives_posted_) return false;
    const auto request = receives_[m % kWindow];
    if (request != kNothing && !network_.test(request)) return false;
    if (reduces(m)) {
      const Chunk in = incoming(m);
      const bool last = m >= (ranks_ - 2) * chunks_;  // this rank's is the last part of the sum
      if (last && op_ == ReduceOp::average)
        reduce_and_divide(buffer_.dtype, place(in), scratch(m), in.elements, divisor_);
      else reduce(op_, buffer_.dtype, place(in), scratch(m), in.elements);
    }
    ++received_;
    return true;
  }

  bool finish_send() {
    if (sent_ == sends_posted_) return false;
    const auto request = sends_[sent_ % kWindow];
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
  const TypedBuffer buffer_;
  const ReduceOp op_;
  const int divisor_;  // of the average
  const std::int64_t ranks_;
  const std::int64_t element_bytes_;
  std::int64_t chunk_elements_ = 1;
  std::int64_t chunks_ = 0;    // C
  std::int64_t messages_ = 0;  // in each direction
  std::vector<std::byte> scratch_;
  std::int64_t receives_posted_ = 0, received_ = 0;
  std::int64_t sends_posted_ = 0, sent_ = 0;
  std::array<PointToPoint::Request, kWindow> receives_{}, sends_{};
};

const RegisterAllreduce ring("ring", ring_allreduce);

}  // namespace

std::shared_ptr<Collective> ring_allreduce(const AlgorithmContext& context, const TypedBuffer& buffer,
                                           ReduceOp op) {
  check_reducible(op, buffer.dtype);
  return std::make_shared<RingAllreduce>(context, buffer, op);
}

}  // namespace kolo
