// What the communication does and when, on all ranks: a trace for chrome://tracing and Perfetto.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/core/base/mutex.h>

namespace kolo {

/// Begins to record, as KOLO_TIMELINE does from init() on. Collective: the ranks also measure how far their
/// clocks are apart. Throws FailedPreconditionError if one is being recorded, or before init().
void start_timeline(const std::string& path);
/// Rank 0 writes all ranks' events to the path that it gave: {"traceEvents":[…]}, one process for each rank,
/// times in µs since the start, by rank 0's clock. Collective. Does nothing if none is being recorded;
/// shutdown() does the same. Where a rank is gone each of the others writes its own to `<path>.<rank>`.
void stop_timeline();

/// The events of this rank. Any thread.
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;
  struct Event {
    std::string_view name;      // the tensor's, or the bucket's
    std::string_view category;  // "queue", "allreduce", "negotiation", or a phase of an algorithm
    std::string_view lane;      // rows of the drawing: events of one lane do not overlap partly
    Clock::time_point start = {}, end = {};
    std::int64_t bytes = 0;
  };

  /// origin: the time 0 of the trace, by this rank's clock.
  explicit Timeline(std::string path, Clock::time_point origin) : path_(std::move(path)), origin_(origin) {}
  const std::string& path() const { return path_; }

  /// Kept until the end, up to a million of them; later ones are counted.
  void add(const Event& event) KOLO_EXCLUDES(mutex_);
  /// The elements of traceEvents, separated by commas: names of process and lanes first.
  std::string events_json(int rank, std::string_view host) const KOLO_EXCLUDES(mutex_);

 private:
  struct Kept {
    int name, category, lane;  // indices of texts_
    std::int64_t bytes;
    Clock::time_point start, end;
  };

  int index_of(std::string_view text) KOLO_REQUIRES(mutex_);

  const std::string path_;
  const Clock::time_point origin_;
  mutable Mutex mutex_;
  std::vector<std::string> texts_ KOLO_GUARDED_BY(mutex_);  // names come again in every step
  std::vector<Kept> events_ KOLO_GUARDED_BY(mutex_);
  std::int64_t dropped_ KOLO_GUARDED_BY(mutex_) = 0;
};

}  // namespace kolo
