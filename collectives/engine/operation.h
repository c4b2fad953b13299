// An eager call that is under way: what it wants, its memory, its end.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <boost/container/small_vector.hpp>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/engine/request.h>
#include <kolo/collectives/progress/flight_recorder.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/tensor/allocator.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

/// Where callers wait for the operations of one set. Any thread.
struct Completion {
  Mutex mutex;
  CondVar changed;
  /// Ends the engine's wait for further submissions. Empty once the engine is gone.
  std::function<void()> hurry KOLO_GUARDED_BY(mutex);
};

struct NameEntry;

/// Filled by the caller, then by the communication thread until it is done, then read by the caller.
struct Operation {
  RequestPtr request;
  // One for each of the request's tensors: read, and written where `writes`.
  boost::container::small_vector<TypedBuffer, 1> buffers;
  std::vector<Tensor> tensors;  // keeps such memory alive where it is the engine's to do so
  bool writes = true;
  Allocator* allocator = &cpu_allocator();  // of the results
  std::vector<std::int64_t> splits;         // alltoall: rows for each rank
  std::vector<Tensor> results;
  std::vector<std::int64_t> numbers;  // alltoall: rows from each rank; join: the last rank; process_set: ids

  std::shared_ptr<Completion> completion;
  NameEntry* entry = nullptr;  // of its name in the queue, while it is pending
  std::chrono::steady_clock::time_point submitted;
  std::int64_t sequence = -1;                     // in the agreed order of the set
  bool taken = false;                             // the results; guarded by completion->mutex
  int parts = 0;                                  // executions that are still to finish
  std::exception_ptr error;                       // released by `done`
  std::atomic<bool> sent{false};                  // the engine has taken notice of it: nothing to hurry
  std::atomic<bool> done{false};                  // set under completion->mutex, acquired by who sees it
  std::vector<std::function<void()>> afterwards;  // guarded by completion->mutex
  FlightRecorder::Sequence record = 0;

  bool wait_until(std::chrono::steady_clock::time_point deadline);
  void wait();
  /// As AnyHandle::then.
  void then(std::function<void()> work);
  /// Waits; throws the operation's error.
  void get();
};
using OperationPtr = std::shared_ptr<Operation>;

/// From memory that is kept: operations come and go by the thousand.
OperationPtr make_operation();
/// Wakes who waits for them. error: of all of them.
void finish(std::span<Operation* const> operations, const std::exception_ptr& error);

}  // namespace kolo::detail
