// A collective in flight on this rank. Written as something that is advanced, not waited for, so that one
// thread keeps several going, a test runs hundreds of ranks in one process, and a GPU stream can stand behind
// it.
#pragma once

#include <exception>

#include <kolo/collectives/reduce/reduction.h>

namespace kolo {

class ReadInPlace;

enum class Progress { none, advanced, finished };

/// start() and progress() are called by one thread at a time, CommThread's own where it needs that. What the
/// operation reads and writes must live until it has finished.
class Collective {
 public:
  virtual ~Collective() = default;
  /// Begins; a finished operation may be started again, and then allocates nothing. Never waits.
  virtual void start() = 0;
  /// Does what can be done without waiting. `finished` is said once; an exception ends the operation as well,
  /// and may leave messages behind that still refer to its memory.
  virtual Progress progress() = 0;
  /// What it is at, for a timeline: a literal such as "all-gather"; nullptr where it has no phases.
  virtual const char* phase() const { return nullptr; }
  /// False: it makes no call that belongs to the communication thread (MPI's), so a thread that would only
  /// wait for it may start and advance it itself.
  virtual bool needs_comm_thread() const { return true; }
  /// Of an allreduce that can leave the summing to whoever reads its elements; else nullptr.
  virtual ReadInPlace* read_in_place() { return nullptr; }
  /// It was started and will not be advanced any more, because of `error`, its own or another's. False: what
  /// is on its way may still refer to its memory, so that it must be kept. The thread that advances it.
  virtual bool abort(const std::exception_ptr& /*error*/) { return false; }
};

}  // namespace kolo
