#include <kolo/collectives/transport/node_channel.h>

#include <algorithm>
#include <new>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

constexpr std::int64_t kCounterLine = 64;
// Large enough that a round's wait is little against its copies, small enough that the slots of two ranks
// stay in the second cache.
constexpr std::int64_t kPayloadBytes = std::int64_t{64} << 10;
// A payload is cut into a piece for each rank.
constexpr std::int64_t kRankBytes = std::int64_t{16} << 10;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");

}  // namespace

NodeChannel::Layout NodeChannel::layout_for(int ranks, std::int64_t payload_bytes) {
  Layout layout{};
  const std::int64_t row = ranks * kCounterLine;
  layout.departed = 0;
  layout.written = row;
  layout.read = 2 * row;
  layout.slots = 3 * row;
  layout.slot_bytes = static_cast<std::int64_t>(sizeof(Head)) + payload_bytes;
  layout.rings = layout.slots + static_cast<std::int64_t>(kSlots) * layout.slot_bytes;
  layout.bytes = layout.rings + ranks * static_cast<std::int64_t>(kPipeBytes);
  return layout;
}

NodeChannel::NodeChannel(NodeView view)
    : view_(std::move(view)),
      payload_bytes_(std::max(kPayloadBytes, view_.size() * kRankBytes)),
      layout_(layout_for(view_.size(), payload_bytes_)),
      own_block_(view_.own().allocate_shared(static_cast<std::size_t>(layout_.bytes))) {
  if (own_block_ == nullptr)
    throw ResourceExhaustedError("node memory has no room for the {} bytes of a communicator of {} ranks",
                                 layout_.bytes, size());
  own_offset_ = *view_.own().offset_of(own_block_, layout_.bytes);
  for (std::int64_t row = 0; row < layout_.slots; row += kCounterLine) new (own_block_ + row) Counter;
  for (std::uint64_t slot = 0; slot < kSlots; ++slot)
    new (own_block_ + layout_.slots + static_cast<std::int64_t>(slot) * layout_.slot_bytes) Head;
}

NodeChannel::~NodeChannel() {
  const auto bytes = static_cast<std::size_t>(layout_.bytes);
  if (blocks_.empty()) {  // nobody else knows it
    view_.own().deallocate(own_block_, bytes);
    return;
  }
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank()) counter(peer, layout_.departed, rank()).store(1, std::memory_order_release);
  const auto* departed = reinterpret_cast<const Counter*>(own_block_ + layout_.departed);
  view_.own().free_when(own_block_, bytes, [departed, ranks = size(), self = rank()] {
    for (int peer = 0; peer < ranks; ++peer)
      if (peer != self && departed[peer].value.load(std::memory_order_acquire) == 0) return false;
    return true;
  });
}

void NodeChannel::connect(std::span<const std::int64_t> offsets) {
  for (int peer = 0; peer < size(); ++peer) blocks_.push_back(view_.begin(peer) + offsets[peer]);
}

bool NodeChannel::is_posted(std::uint64_t round) {
  for (; waits_for_ < size(); ++waits_for_)
    if (head(waits_for_, round).round.load(std::memory_order_acquire) != round) return false;
  waits_for_ = 0;
  return true;
}

NodeChannel::Pipe NodeChannel::pipe(int from, int to) {
  return {.written = &counter(from, layout_.written, to),
          .read = &counter(to, layout_.read, from),
          .ring = blocks_[from] + layout_.rings + to * static_cast<std::int64_t>(kPipeBytes)};
}

}  // namespace kolo
