// What a FIFOQueue holds, and who waits for it.
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/kernels/containers.h>
#include <kolo/core/ops/queues_internal.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

using QueueElement = std::vector<Tensor>;  // one for each component, in memory of its own

/// Who puts elements in or takes them out, one call after the other.
class QueueClient {
 public:
  virtual ~QueueClient() = default;
  /// The call is over. Once for each call that has not thrown, perhaps before it returns; on any thread,
  /// which holds no lock. Must not throw; the client may be gone when it returns.
  virtual void finished(std::exception_ptr error) = 0;
  /// Those to be put in; those that were taken. The queue's while a call is under way.
  std::deque<QueueElement> elements;
};

/// Any thread; calls return at once. Puts wait in one line, takes in another: only the first of a line moves
/// elements, but for takes that pass over some.
class QueueState final : public Contained {
 public:
  /// capacity: −1 for any number of elements.
  QueueState(std::string name, std::int64_t capacity, ElementSpec spec)
      : name_(std::move(name)), capacity_(capacity), spec_(std::move(spec)) {}

  const ElementSpec& spec() const { return spec_; }
  void check_shared_by(const Node& node) const override;
  void drop() override KOLO_EXCLUDES(mutex_);
  /// What the client's call waits for, for people; "" where it does not.
  std::string waits_in(const QueueClient& client) KOLO_EXCLUDES(mutex_);

  /// Throws CancelledError where the queue is closed.
  void put(QueueClient& client) KOLO_EXCLUDES(mutex_);
  /// exactly: else a closed queue gives what is left, at least one.
  void take(QueueClient& client, std::size_t count, bool exactly) KOLO_EXCLUDES(mutex_);
  /// Of a queue of numbers: the greatest, if it is greater than `than`; smaller ones are dropped. Who stands
  /// behind it does not wait for it. Throws AbortedError with the text of the last reset for a generation
  /// that is not the queue's.
  void take_newest(QueueClient& client, std::int64_t than, std::int64_t generation) KOLO_EXCLUDES(mutex_);
  /// The client's call, if it is still under way, finishes with CancelledError. What it had taken is in front
  /// again, what it had put in stays.
  void cancel(QueueClient& client) KOLO_EXCLUDES(mutex_);
  /// Throws AbortedError the second time.
  void close(bool cancel_pending_puts) KOLO_EXCLUDES(mutex_);
  /// As it was when it was made, but for its generation; calls that wait finish with AbortedError.
  void reset(const std::string& text, std::optional<std::int64_t> generation = {}) KOLO_EXCLUDES(mutex_);
  std::int64_t generation() KOLO_EXCLUDES(mutex_);
  std::size_t size() KOLO_EXCLUDES(mutex_);
  bool is_closed() KOLO_EXCLUDES(mutex_);

 private:
  struct Take {
    QueueClient* client;
    std::size_t count;
    bool exactly;
    std::optional<std::int64_t> than = {};
  };
  // Told when the lock is free again.
  using Finished = std::vector<std::pair<QueueClient*, std::exception_ptr>>;
  static void tell(const Finished& finished);

  void empty(Finished& finished, const std::function<std::exception_ptr(const char* call)>& error)
      KOLO_REQUIRES(mutex_);
  void move_all(Finished& finished) KOLO_REQUIRES(mutex_);
  bool move_in(Finished& finished) KOLO_REQUIRES(mutex_);
  bool move_out(Finished& finished) KOLO_REQUIRES(mutex_);
  bool move_out(std::deque<Take>::iterator take, Finished& finished) KOLO_REQUIRES(mutex_);
  bool move_newest_out(std::deque<Take>::iterator take, Finished& finished) KOLO_REQUIRES(mutex_);
  std::exception_ptr insufficient(std::size_t requested) const KOLO_REQUIRES(mutex_);
  bool has_room() const KOLO_REQUIRES(mutex_);
  void give_back(QueueClient& client) KOLO_REQUIRES(mutex_);

  const std::string name_;
  const std::int64_t capacity_;
  const ElementSpec spec_;
  Mutex mutex_;
  std::deque<QueueElement> elements_ KOLO_GUARDED_BY(mutex_);
  std::deque<QueueClient*> puts_ KOLO_GUARDED_BY(mutex_);
  std::deque<Take> takes_ KOLO_GUARDED_BY(mutex_);
  bool closed_ KOLO_GUARDED_BY(mutex_) = false;
  std::int64_t generation_ KOLO_GUARDED_BY(mutex_) = 0;
  std::string reset_text_ KOLO_GUARDED_BY(mutex_);  // of the last reset
};

}  // namespace kolo::detail
