#include <kolo/collectives/transport/shared_memory_point_to_point.h>

#include <algorithm>

#include <kolo/collectives/transport/copy.h>

namespace kolo {
namespace {

constexpr std::size_t kPipeBytes = NodeChannel::kPipeBytes;
// After so many the other side is told, which then copies at the same time.
constexpr std::size_t kCopyBytes = std::size_t{16} << 10;
static_assert(kPipeBytes % kCopyBytes == 0);

// How many bytes may move at once: within the message, the room (or what is there), and the ring's end.
std::size_t piece(std::size_t left, std::size_t room, std::uint64_t position) {
  return std::min({left, room, kCopyBytes, kPipeBytes - static_cast<std::size_t>(position % kPipeBytes)});
}

}  // namespace

SharedMemoryPointToPoint::SharedMemoryPointToPoint(NodeChannel& channel)
    : channel_(channel), out_(channel.size()), in_(channel.size()) {
  for (int peer = 0; peer < channel.size(); ++peer) {
    out_[peer].pipe = channel.pipe(channel.rank(), peer);
    in_[peer].pipe = channel.pipe(peer, channel.rank());
  }
}

void SharedMemoryPointToPoint::Queue::pop() {
  if (++first < messages.size()) return;
  messages.clear();
  first = 0;
}

PointToPoint::Request SharedMemoryPointToPoint::add(Line& line, std::byte* bytes, std::size_t count) {
  if (free_.empty()) {
    free_.push_back(static_cast<Request>(done_.size()));
    done_.push_back(false);
  }
  if (line.queue.first > 64) {  // a queue that never runs empty
    auto& messages = line.queue.messages;
    messages.erase(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(line.queue.first));
    line.queue.first = 0;
  }
  const Request request = free_.back();
  free_.pop_back();
  done_[request] = false;
  line.queue.messages.push_back({bytes, count, request});
  return request;
}

PointToPoint::Request SharedMemoryPointToPoint::send(int to, std::span<const std::byte> bytes) {
  const Request request = add(out_[to], const_cast<std::byte*>(bytes.data()), bytes.size());
  push(out_[to]);
  return request;
}

PointToPoint::Request SharedMemoryPointToPoint::receive(int from, std::span<std::byte> bytes) {
  return add(in_[from], bytes.data(), bytes.size());
}

void SharedMemoryPointToPoint::finish_empty(Line& line) {
  while (!line.queue.empty() && line.queue.front().left == 0) {
    done_[line.queue.front().request] = true;
    line.queue.pop();
  }
}

void SharedMemoryPointToPoint::push(Line& line) {
  for (finish_empty(line); !line.queue.empty(); finish_empty(line)) {
    Message& message = line.queue.front();
    const auto read = line.pipe.read->load(std::memory_order_acquire);
    const auto room = kPipeBytes - static_cast<std::size_t>(line.moved - read);
    const std::size_t bytes = piece(message.left, room, line.moved);
    if (bytes == 0) return;
    copy_near(line.pipe.ring + line.moved % kPipeBytes, message.bytes, static_cast<std::int64_t>(bytes));
    message.bytes += bytes;
    message.left -= bytes;
    line.moved += bytes;
    moved_bytes_ += bytes;
    line.pipe.written->store(line.moved, std::memory_order_release);
  }
}

void SharedMemoryPointToPoint::pull(Line& line) {
  for (finish_empty(line); !line.queue.empty(); finish_empty(line)) {
    Message& message = line.queue.front();
    const auto written = line.pipe.written->load(std::memory_order_acquire);
    const std::size_t bytes = piece(message.left, static_cast<std::size_t>(written - line.moved), line.moved);
    if (bytes == 0) return;
    copy_near(message.bytes, line.pipe.ring + line.moved % kPipeBytes, static_cast<std::int64_t>(bytes));
    message.bytes += bytes;
    message.left -= bytes;
    line.moved += bytes;
    moved_bytes_ += bytes;
    line.pipe.read->store(line.moved, std::memory_order_release);
  }
}

bool SharedMemoryPointToPoint::test(Request request) {
  if (!done_[request]) {
    for (int peer = 0; peer < size(); ++peer) {
      if (!out_[peer].queue.empty()) push(out_[peer]);
      if (!in_[peer].queue.empty()) pull(in_[peer]);
    }
  }
  if (!done_[request]) return false;
  free_.push_back(request);
  return true;
}

}  // namespace kolo
