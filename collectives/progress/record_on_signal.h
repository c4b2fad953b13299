// When a signal asks for it, or is about to end the process, the flight record is written first.
#pragma once

#include <chrono>

#include <kolo/collectives/progress/flight_recorder.h>

namespace kolo::detail {

/// SIGUSR2: the record is written. SIGTERM in a program that does not handle it: the record is written if an
/// operation is pending, then the process ends. In one that takes SIGTERM as a request to stop: it is written
/// if the request finds an operation pending that 0.3 s later has not ended (mpirun's SIGKILL comes 1 s
/// after).
class RecordOnSignal {
 public:
  /// On the main thread; recorder outlives it.
  explicit RecordOnSignal(FlightRecorder& recorder);
  ~RecordOnSignal();
  RecordOnSignal(const RecordOnSignal&) = delete;
  RecordOnSignal& operator=(const RecordOnSignal&) = delete;

  /// One thread, several times a second.
  void poll();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Stop { none, watched, settled };

  void watch_the_stop();

  FlightRecorder& recorder_;
  Stop stop_ = Stop::none;
  Clock::time_point stop_seen_;
  std::int64_t ended_ = 0;  // operations, when the request was seen
};

}  // namespace kolo::detail
