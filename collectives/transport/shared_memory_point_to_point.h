// Messages between the ranks of a node, for the algorithms that are written against messages.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <kolo/collectives/transport/node_channel.h>
#include <kolo/collectives/transport/point_to_point.h>

namespace kolo {

/// Messages are streams of bytes through the channel's pipes: both sides know their lengths. They move
/// whenever any request is tested. One thread at a time.
class SharedMemoryPointToPoint final : public PointToPoint {
 public:
  /// channel: outlives it; connected.
  explicit SharedMemoryPointToPoint(NodeChannel& channel);
  int rank() const override { return channel_.rank(); }
  int size() const override { return channel_.size(); }
  Request send(int to, std::span<const std::byte> bytes) override;
  Request receive(int from, std::span<std::byte> bytes) override;
  bool test(Request request) override;
  /// In both directions, since the beginning.
  std::uint64_t moved_bytes() const { return moved_bytes_; }

 private:
  struct Message {
    std::byte* bytes;  // only read where it is sent
    std::size_t left;
    Request request;
  };
  // First in, first out, in memory that is kept.
  struct Queue {
    std::vector<Message> messages;
    std::size_t first = 0;
    bool empty() const { return first == messages.size(); }
    Message& front() { return messages[first]; }
    void pop();
  };
  // To or from one rank.
  struct Line {
    NodeChannel::Pipe pipe{};
    std::uint64_t moved = 0;  // what this side's counter says
    Queue queue;
  };

  Request add(Line& line, std::byte* bytes, std::size_t count);
  void push(Line& line);
  void pull(Line& line);
  void finish_empty(Line& line);

  NodeChannel& channel_;
  std::vector<Line> out_, in_;  // by rank
  std::vector<bool> done_;      // by request
  std::vector<Request> free_;
  std::uint64_t moved_bytes_ = 0;
};

}  // namespace kolo
