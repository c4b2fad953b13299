// Where callers leave their operations for the communication thread: the pending ones of one process set.
#pragma once

#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <kolo/collectives/engine/operation.h>

namespace kolo::detail {

/// What the queue keeps of a name after its operation has ended, for the next one: names come again in every
/// step.
struct NameEntry {
  RequestPtr request;    // of the last operation
  OperationPtr pending;  // nullptr: the name is free
};

/// An operation on one tensor as its caller describes it. If it is the same as the last one of its name, it
/// needs no request of its own.
struct CallAgain {
  OpKind kind = OpKind::allreduce;
  std::string_view name;
  const TypedBuffer& buffer;
  const Shape* shape = nullptr;  // nullptr: one dimension
  const Reduction& reduction;
  bool average_over_all = false;

  bool is_same_as(const Request& request) const;
};

/// Any thread.
class TensorQueue {
 public:
  using Clock = std::chrono::steady_clock;
  struct Refused {
    std::string name, text;
  };
  struct Item {
    OperationPtr operation;
    std::unique_ptr<Refused> refused;  // instead of it
  };

  /// rank: the job's number of this rank, for messages. check_overlap: pending operations must not share
  /// memory, unless they only read it.
  TensorQueue(int rank, bool check_overlap) : rank_(rank), check_overlap_(check_overlap) {}

  /// `<op>.noname.<k>`: k counts the unnamed calls of this kind. Throws as add() does while this rank has
  /// joined, so that the count stands still.
  std::string next_name(OpKind kind) KOLO_EXCLUDES(mutex_);
  UnnamedCalls unnamed_calls() KOLO_EXCLUDES(mutex_);
  /// All ranks have joined: they go on counting from here.
  void count_unnamed_from(const UnnamedCalls& calls) KOLO_EXCLUDES(mutex_);
  /// Throws what break_off() was given; InvalidArgumentError `<op> <name> is already pending on rank <r>; …`;
  /// FailedPreconditionError while this rank has joined. True: the queue was empty.
  bool add(const OperationPtr& operation) KOLO_EXCLUDES(mutex_);
  /// The same, if the call is the same as the last one of its name, whose request the operation then gets.
  /// nullopt, and nothing has changed, if it is not, or if add() would throw.
  std::optional<bool> add_again(const OperationPtr& operation, const CallAgain& call) KOLO_EXCLUDES(mutex_);
  /// This rank's call of `name` failed; nothing happens while another call of that name is pending, or this
  /// rank has joined and takes part in the others' calls whatever it asks for itself. True: the queue was
  /// empty.
  bool refuse(std::string name, std::string text) KOLO_EXCLUDES(mutex_);
  /// What was added last is not to wait for more.
  void hurry() KOLO_EXCLUDES(mutex_);

  /// What was added, once `cycle` has passed since the first of it or somebody is in a hurry. `items` is
  /// emptied first. True: there is more, which is to wait.
  bool take(Clock::time_point now, Clock::duration cycle, std::vector<Item>& items) KOLO_EXCLUDES(mutex_);
  /// Their names are free again. Those that are done already stay as they are.
  void finish(std::span<EngineOperation* const> operations, const std::exception_ptr& error)
      KOLO_EXCLUDES(mutex_);
  std::vector<OperationPtr> pending() KOLO_EXCLUDES(mutex_);
  bool empty() KOLO_EXCLUDES(mutex_);
  /// From now on add() throws this; the first one stays.
  void break_off(const std::exception_ptr& error) KOLO_EXCLUDES(mutex_);
  std::exception_ptr broken() KOLO_EXCLUDES(mutex_);

 private:
  // Free names are forgotten only above it.
  static constexpr std::size_t kLeastNames = 4096;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };

  void check_not_joined(OpKind kind, const std::string& name) KOLO_REQUIRES(mutex_);
  bool add(const OperationPtr& operation, NameEntry& entry) KOLO_REQUIRES(mutex_);
  void forget_free_names() KOLO_REQUIRES(mutex_);
  void check_memory(const EngineOperation& operation) KOLO_REQUIRES(mutex_);
  void forget(const EngineOperation& operation) KOLO_REQUIRES(mutex_);

  const int rank_;
  const bool check_overlap_;
  Mutex mutex_;
  UnnamedCalls unnamed_ KOLO_GUARDED_BY(mutex_) = {};
  std::vector<Item> items_ KOLO_GUARDED_BY(mutex_);
  Clock::time_point first_ KOLO_GUARDED_BY(mutex_);
  bool in_hurry_ KOLO_GUARDED_BY(mutex_) = false;
  std::unordered_map<std::string, NameEntry, Hash, std::equal_to<>> names_ KOLO_GUARDED_BY(mutex_);
  std::size_t most_names_ KOLO_GUARDED_BY(mutex_) = kLeastNames;
  std::size_t pending_ KOLO_GUARDED_BY(mutex_) = 0;
  OperationPtr join_ KOLO_GUARDED_BY(mutex_);
  struct Range {
    const std::byte* end;
    const EngineOperation* operation;
  };
  std::multimap<const std::byte*, Range> memory_ KOLO_GUARDED_BY(mutex_);  // by first byte
  std::exception_ptr broken_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::detail
