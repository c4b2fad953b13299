// An eager call: what one rank wants to have done under a name, everything about it that the ranks compare,
// what the ranks of a part of the tree together say about it, and the call under way: its memory and its end.
#pragma once

#include <boost/container/small_vector.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/progress/flight_recorder.h>
#include <kolo/collectives/reduce/reduction.h>
#include <kolo/collectives/transport/wire.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/tensor/allocator.h>
#include <kolo/core/tensor/shape.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

enum class OpKind : std::uint8_t {
  allreduce,
  grouped_allreduce,
  reduce_scatter,
  grouped_reduce_scatter,
  allgather,
  broadcast,
  alltoall,
  gather,
  scatter,
  barrier,
  join,
  process_set,
  broadcast_object,
  allgather_object,
  grouped_allgather,
  grouped_broadcast
};
inline constexpr int kOpKinds = 16;
/// By kind: how many calls without a name of their own a rank has made on a set.
using UnnamedCalls = std::array<std::int64_t, kOpKinds>;

/// "allreduce", "grouped_allreduce", …: the function's own name.
const char* name(OpKind kind);
/// Ranks may give different numbers of rows: allgathers, alltoall, gather, objects.
bool has_own_rows(OpKind kind);
bool is_reduction(OpKind kind);
/// May be called while a rank has joined.
bool is_legal_while_joined(OpKind kind);

struct TensorSpec {
  DType dtype = DType::f32;
  Shape shape;
  bool operator==(const TensorSpec&) const = default;
  std::int64_t bytes() const { return shape.elements() * static_cast<std::int64_t>(size_of(dtype)); }
};

/// What one rank wants to have done under a name: everything about it that the ranks compare.
struct Request {
  std::string name;
  OpKind kind = OpKind::allreduce;
  std::vector<TensorSpec> tensors;  // one; a group's members; none for a barrier and a scatter's receivers
  Reduction reduction;
  bool average_over_all = false;  // also over the ranks that have joined
  int root = -1;                  // a global rank, for operations that have one
  std::string device = "cpu";     // its kind
  std::string payload;            // what else must agree, as text: a new process set's ranks
  bool named = true;              // by the caller, so that the name may come again
  // Where the response cache of this rank has found it: the communication thread's own, and no part of it.
  mutable int slot_hint = -1;

  std::int64_t rows(std::size_t tensor = 0) const {
    if (tensor >= tensors.size() || tensors[tensor].shape.rank() == 0) return 0;
    return tensors[tensor].shape.dim(0);
  }
  /// By rank of the set, and within it by tensor, as they have been agreed on: those of that rank are the
  /// same.
  bool has_rows(const std::vector<std::int64_t>& agreed, int rank) const;
  std::int64_t bytes() const;
};
using RequestPtr = std::shared_ptr<const Request>;

/// The ranks that gave these may execute them together. Rows, where ranks have their own, do not count.
bool agree(const Request& a, const Request& b);
/// `Mismatched shapes for x: rank 0 has [17], rank 1 has [18]`; "" if they agree.
std::string disagreement(const Request& a, int rank_of_a, const Request& b, int rank_of_b);

void write(ByteWriter& to, const Request& request);
Request read_request(ByteReader& from);

/// What the ranks of a part of the tree together say about one name.
/// Ranks here are those of the set.
struct Tally {
  struct Variant {
    int rank = 0;  // the lowest that says so
    RequestPtr request;
  };
  std::string name;
  std::vector<Variant> variants;                   // by rank; one if all agree, none if all have refused
  int contributors = 0;                            // ranks that submitted it
  int joined_rank = -1;                            // one that counts as ready because it has joined
  std::vector<std::pair<int, std::int64_t>> rows;  // of each rank by tensor, where they have their own

  static Tally of(int rank, RequestPtr request);
  void merge(Tally other);
  /// The rank's number in the job is members[rank]. "" if all agree.
  std::string disagreement(const std::vector<int>& members) const;

  void write(ByteWriter& to) const;
  static Tally read(ByteReader& from);
};

/// Where callers wait for the operations of one set. Any thread.
struct EngineCompletion {
  Mutex mutex;
  CondVar changed;
  /// Ends the engine's wait for further submissions. Empty once the engine is gone.
  std::function<void()> hurry KOLO_GUARDED_BY(mutex);
};

struct NameEntry;

/// Filled by the caller, then by the communication thread until it is done, then read by the caller.
struct EngineOperation {
  RequestPtr request;
  // One for each of the request's tensors: read, and written where `writes`.
  boost::container::small_vector<TypedBuffer, 1> buffers;
  std::vector<Tensor> tensors;  // keeps such memory alive where it is the engine's to do so
  bool writes = true;
  Allocator* allocator = &cpu_allocator();  // of the results
  std::vector<std::int64_t> splits;         // alltoall: rows for each rank
  std::vector<Tensor> results;
  std::vector<std::int64_t> numbers;  // alltoall: rows from each rank; join: the last rank; process_set: ids

  std::shared_ptr<EngineCompletion> completion;
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
using OperationPtr = std::shared_ptr<EngineOperation>;

/// From memory that is kept: operations come and go by the thousand.
OperationPtr make_operation();
/// Wakes who waits for them. error: of all of them.
void finish(std::span<EngineOperation* const> operations, const std::exception_ptr& error);

}  // namespace kolo::detail
