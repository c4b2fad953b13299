// The last collectives of this rank, with their states and times, for whoever asks why a job stood still.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/tensor/dtype.h>

namespace kolo {

/// What is known of an operation before it runs. Borrowed texts; all but the name may be left out.
struct OperationDetails {
  std::string_view name = {};   // the tensor's, or what a schedule calls its bucket
  std::string_view kind = {};   // "allreduce", …
  std::string_view shape = {};  // "[784,128]"
  DType dtype = DType::f32;     // read where there are bytes
  std::int64_t bytes = 0;
  int process_set = 0;
  // The same on all ranks for the same operation, -1 where they have not agreed on it yet: it is by these two
  // that the records of several ranks are lined up, else by the name.
  int channel = -1;
  std::int64_t ticket = -1;
};

enum class OperationState : std::uint8_t { submitted, started, finished, failed };
/// "submitted", …: the enumerator's own spelling.
const char* name(OperationState state);

/// Any thread. Each call takes a lock for some tens of nanoseconds and allocates nothing.
class FlightRecorder {
 public:
  using Clock = std::chrono::system_clock;  // ranks on several hosts compare these times
  /// Of an operation on this rank: 0, 1, 2, … .
  using Sequence = std::uint64_t;
  struct Identity {
    int rank = 0;
    int size = 1;
    std::string host = {};
    std::string folder = {};
    std::string job = {};  // the same on all its ranks, and on those of no other job
  };

  explicit FlightRecorder(std::size_t capacity = 100);
  void set_identity(Identity identity) KOLO_EXCLUDES(mutex_);

  /// ago: how long it is since it was submitted.
  Sequence submitted(const OperationDetails& details, std::chrono::nanoseconds ago = {})
      KOLO_EXCLUDES(mutex_);
  /// Of so many operations, which at least capacity() newer ones follow: they are counted, and numbered from
  /// the result on.
  Sequence skip(std::size_t operations) KOLO_EXCLUDES(mutex_);
  std::size_t capacity() const { return capacity_; }
  /// The ranks have agreed on its place.
  void agreed(Sequence operation, int channel, std::int64_t ticket) KOLO_EXCLUDES(mutex_);
  void started(std::span<const Sequence> operations) KOLO_EXCLUDES(mutex_);
  void started(Sequence operation) { started({&operation, 1}); }
  void finished(std::span<const Sequence> operations, bool failed) KOLO_EXCLUDES(mutex_);
  void finished(Sequence operation, bool failed) { finished({&operation, 1}, failed); }
  /// Of one that its caller has run by itself, and is over: all of the above at once.
  void ended_at_once(const OperationDetails& details, std::chrono::nanoseconds took) KOLO_EXCLUDES(mutex_);
  /// Operations that were submitted and have not ended.
  std::int64_t pending() const KOLO_EXCLUDES(mutex_);
  /// Operations that have ended, since the beginning.
  std::int64_t ended() const KOLO_EXCLUDES(mutex_);

  /// {"rank","size","host","job","reason","written","operations":[{"sequence","channel","ticket","name",…}]},
  /// oldest first; times in seconds since 1970.
  std::string json(std::string_view reason) const KOLO_EXCLUDES(mutex_);
  /// Writes json() to `<folder>/kolo-flight.<rank>.json`, over what an earlier job has left there, and
  /// returns that path; "" where it cannot be written or nothing was recorded. Without a folder of its own it
  /// goes to record_folder(), beside the checkpoints or logs, or, where that is none, to `kolo-flight-<job>`
  /// among the system's temporary files. Never throws.
  std::string write(std::string_view reason) const noexcept KOLO_EXCLUDES(mutex_);

 private:
  struct Record {
    std::array<char, 96> name;
    std::array<char, 24> kind;
    std::array<char, 48> shape;
    DType dtype;
    OperationState state;
    int process_set, channel;
    std::int64_t ticket, bytes;
    Clock::time_point submitted, started, ended;
  };

  Record& add(const OperationDetails& details, Clock::time_point now) KOLO_REQUIRES(mutex_);
  // nullptr for an operation that newer ones have pushed out.
  Record* find(Sequence operation) KOLO_REQUIRES(mutex_);

  const std::size_t capacity_;
  mutable Mutex mutex_;
  Identity identity_ KOLO_GUARDED_BY(mutex_);
  std::vector<Record> records_ KOLO_GUARDED_BY(mutex_);  // number s in place s mod capacity
  Sequence next_ KOLO_GUARDED_BY(mutex_) = 0;
  std::int64_t ended_ KOLO_GUARDED_BY(mutex_) = 0;
};

}  // namespace kolo

namespace kolo::detail {

/// When a signal asks for it, or is about to end the process, the flight record is written first.
/// SIGUSR2: the record is written. SIGTERM in a program that does not handle it: the record is written if an
/// operation is pending, then the process ends. In one that takes SIGTERM as a request to stop: it is written
/// if the request finds an operation pending that 0.3 s later has not ended (mpirun's SIGKILL comes 1 s
/// after). Made and destroyed on the main thread.
class RecordOnSignal {
 public:
  /// On the main thread; recorder outlives it. before_end: after the record, before SIGTERM ends the process;
  /// by poll().
  explicit RecordOnSignal(FlightRecorder& recorder, std::function<void()> before_end = {});
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
  const std::function<void()> before_end_;
  Stop stop_ = Stop::none;
  Clock::time_point stop_seen_;
  std::int64_t ended_ = 0;  // operations, when the request was seen
};

}  // namespace kolo::detail
