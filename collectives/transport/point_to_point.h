// What the algorithms are written against: messages between two ranks. The implementations are MPI (and, to
// come, shared memory) and, in unit tests, a simulated network of hundreds of ranks in one process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace kolo {

/// Messages from one rank to another arrive in the order in which they were sent, and meet the receives in
/// the order in which those were posted. One thread. Nothing here waits; who waits, for how long and what
/// then, is the business of the thread that advances the operation.
class PointToPoint {
 public:
  /// A message on its way; valid until test() has said that it is done.
  using Request = int;

  virtual ~PointToPoint() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The bytes may be changed once the request is done. At most 1 GiB.
  virtual Request send(int to, std::span<const std::byte> bytes) = 0;
  /// The message has exactly as many bytes.
  virtual Request receive(int from, std::span<std::byte> bytes) = 0;
  /// True when the request is done, which frees it. Throws where the network reports an error.
  virtual bool test(Request request) = 0;
};

/// Some ranks of a network as a network of their own.
/// Its rank k is rank members[k] of the parent, which it borrows. Its messages are the parent's: of two
/// sub-networks with a pair of ranks in common only one is used at a time. One thread, the parent's.
class SubNetwork final : public PointToPoint {
 public:
  /// members holds the parent's own rank, and no rank twice.
  SubNetwork(PointToPoint& parent, std::vector<int> members)
      : parent_(parent),
        members_(std::move(members)),
        rank_(static_cast<int>(std::find(members_.begin(), members_.end(), parent.rank()) -
                               members_.begin())) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  Request send(int to, std::span<const std::byte> bytes) override {
    return parent_.send(members_[to], bytes);
  }
  Request receive(int from, std::span<std::byte> bytes) override {
    return parent_.receive(members_[from], bytes);
  }
  bool test(Request request) override { return parent_.test(request); }

 private:
  PointToPoint& parent_;
  const std::vector<int> members_;
  const int rank_;
};

}  // namespace kolo
