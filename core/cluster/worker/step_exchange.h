// Where the values that a task's part of a step makes for other tasks meet those who ask for them.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/call.h>
#include <kolo/core/cluster/worker/tensor_sink.h>

namespace kolo::detail {

/// Of one step. A value is kept until it is asked for; a request waits until its values are there. Any
/// thread.
class StepExchange : public std::enable_shared_from_this<StepExchange> {
 public:
  /// released: called once, unless the value is withdrawn. Throws InternalError for a key that was put.
  void put(const std::string& key, const Tensor& value, bool dead, std::function<void()> released)
      KOLO_EXCLUDES(mutex_);
  /// Takes back what nobody has asked for; false where there is nothing.
  bool withdraw(const std::string& key) KOLO_EXCLUDES(mutex_);
  /// For people: that a value waits to be asked for, or to be taken; "" where it was never put.
  std::string state_of(const std::string& key) KOLO_EXCLUDES(mutex_);
  /// Cancelling the call ends the sink with CancelledError.
  std::shared_ptr<Call> ask(const std::vector<std::string>& keys, std::shared_ptr<TensorSink> sink)
      KOLO_EXCLUDES(mutex_);
  /// The step is over: ends the sinks that wait and those that come later. Kept values stay until they are
  /// withdrawn.
  void end(std::exception_ptr error) KOLO_EXCLUDES(mutex_);

 private:
  struct Value {
    Tensor tensor;
    bool dead = false;
    std::function<void()> released;
  };
  // A request under way.
  struct Request {
    std::shared_ptr<TensorSink> sink;
    std::size_t unanswered = 0;
    int puts = 0;  // under way
    bool ended = false;
    std::exception_ptr error = nullptr;  // that it is to end with
  };
  struct Asked {
    std::shared_ptr<Request> request;
    std::size_t place = 0;
  };
  class Asking;

  void hand_over(const Asked& asked, const std::string& key, Value value) KOLO_EXCLUDES(mutex_);
  void end_request(const std::shared_ptr<Request>& request, std::exception_ptr error) KOLO_EXCLUDES(mutex_);
  // Whether the request is to end now, which the caller does without the lock.
  static bool comes_to_its_end(Request& request);

  Mutex mutex_;
  std::map<std::string, Value> kept_ KOLO_GUARDED_BY(mutex_);
  std::map<std::string, Asked> asked_ KOLO_GUARDED_BY(mutex_);
  std::map<std::string, bool> handed_over_ KOLO_GUARDED_BY(mutex_);  // key → released
  std::exception_ptr over_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::detail
