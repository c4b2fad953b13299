// Where callers leave their operations for the communication thread: the pending ones of one process set.
#pragma once

#include <array>
#include <chrono>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <kolo/collectives/engine/detail/operation.h>

namespace kolo::detail {

/// Any thread.
class TensorQueue {
 public:
  using Clock = std::chrono::steady_clock;
  struct Item {
    OperationPtr operation;  // nullptr: a refusal
    std::string name, text;
  };

  /// rank: the job's number of this rank, for messages. check_overlap: pending operations must not share
  /// memory, unless they only read it.
  TensorQueue(int rank, bool check_overlap) : rank_(rank), check_overlap_(check_overlap) {}

  /// `<op>.noname.<k>`: k counts the unnamed calls of this kind.
  std::string next_name(OpKind kind) KOLO_EXCLUDES(mutex_);
  /// Throws what break_off() was given; InvalidArgumentError `<op> <name> is already pending on rank <r>; …`;
  /// FailedPreconditionError while this rank has joined. True: the queue was empty.
  bool add(const OperationPtr& operation) KOLO_EXCLUDES(mutex_);
  /// This rank's call of `name` failed. True: the queue was empty.
  bool refuse(std::string name, std::string text) KOLO_EXCLUDES(mutex_);
  /// What was added last is not to wait for more.
  void hurry() KOLO_EXCLUDES(mutex_);

  /// What was added, once `cycle` has passed since the first of it or somebody is in a hurry. `items` is
  /// emptied first. True: there is more, which is to wait.
  bool take(Clock::time_point now, Clock::duration cycle, std::vector<Item>& items) KOLO_EXCLUDES(mutex_);
  /// The pending operation of this name, nullptr if there is none.
  OperationPtr find(const std::string& name) KOLO_EXCLUDES(mutex_);
  /// Their names are free again. Those that are done already stay as they are.
  void finish(const std::vector<OperationPtr>& operations, const std::exception_ptr& error)
      KOLO_EXCLUDES(mutex_);
  std::vector<OperationPtr> pending() KOLO_EXCLUDES(mutex_);
  bool empty() KOLO_EXCLUDES(mutex_);
  /// From now on add() throws this; the first one stays.
  void break_off(const std::exception_ptr& error) KOLO_EXCLUDES(mutex_);
  std::exception_ptr broken() KOLO_EXCLUDES(mutex_);

 private:
  void check_memory(const Operation& operation) KOLO_REQUIRES(mutex_);
  void forget(const Operation& operation) KOLO_REQUIRES(mutex_);

  const int rank_;
  const bool check_overlap_;
  Mutex mutex_;
  std::array<std::int64_t, kOpKinds> unnamed_ KOLO_GUARDED_BY(mutex_) = {};
  std::vector<Item> items_ KOLO_GUARDED_BY(mutex_);
  Clock::time_point first_ KOLO_GUARDED_BY(mutex_);
  bool in_hurry_ KOLO_GUARDED_BY(mutex_) = false;
  // The keys lie in the operations' requests.
  std::unordered_map<std::string_view, OperationPtr> pending_ KOLO_GUARDED_BY(mutex_);
  OperationPtr join_ KOLO_GUARDED_BY(mutex_);
  struct Range {
    const std::byte* end;
    const Operation* operation;
  };
  std::multimap<const std::byte*, Range> memory_ KOLO_GUARDED_BY(mutex_);  // by first byte
  std::exception_ptr broken_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::detail
