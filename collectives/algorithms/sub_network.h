// Some ranks of a network as a network of their own.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <kolo/collectives/transport/point_to_point.h>

namespace kolo {

/// Its rank k is rank members[k] of the parent, which it borrows. Its messages are the parent's: of two
/// sub-networks with a pair of ranks in common only one is used at a time.
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
