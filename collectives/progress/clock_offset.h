// How far the ranks' clocks are apart.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/transport/point_to_point.h>

namespace kolo::detail {

/// Rank 0 asks every other rank in turn for its time, several times, and believes the fastest answer: it was
/// given half a round trip before it came (Cristian, Distributed Computing 3 (1989)); the error is at most
/// that half. Rank 0 then tells it. Messages: 2·kRounds + 1 with each rank.
class ClockOffset final : public Collective {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  static constexpr int kRounds = 8;

  explicit ClockOffset(PointToPoint& network) : network_(network) {}
  void start() override;
  Progress progress() override;
  /// This rank's steady clock minus rank 0's, once it has finished.
  Nanoseconds offset() const { return Nanoseconds(offset_); }

 private:
  bool step();
  bool ask();
  bool answer();
  bool done(std::optional<PointToPoint::Request>& request);

  PointToPoint& network_;
  int peer_ = 1;  // rank 0: the one that is asked
  int round_ = 0;
  bool finished_ = false;
  std::int64_t asked_ = 0, best_trip_ = 0, best_offset_ = 0;
  std::int64_t out_ = 0, in_ = 0, offset_ = 0;
  std::optional<PointToPoint::Request> sending_, receiving_;
};

}  // namespace kolo::detail
