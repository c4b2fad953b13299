// How a task hands the values of a step to the task that asked for them, whatever carries them there.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

#include <kolo/core/cluster/worker/worker.h>

namespace kolo::detail {

/// Takes the values of one TensorsRequest. Any thread; nothing here blocks.
class TensorSink {
 public:
  virtual ~TensorSink() = default;
  /// The value of `key` (its place among the keys); dead: of a branch that was not taken, `value` is then
  /// empty. The elements are read until `released` is called: once, from any thread, perhaps before this
  /// returns, also where the call has ended and nothing is sent any more. It must neither throw nor block.
  virtual void put(std::size_t key, const Tensor& value, bool dead, std::function<void()> released) = 0;
  /// Last and once. error: null where all values were put.
  virtual void end(std::exception_ptr error) = 0;
};

/// The local task, as its server hands its values on.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// Puts each value when it exists, which may be during this call. Cancelling: the receiver has gone; end()
  /// follows nevertheless. Does not block.
  virtual std::shared_ptr<Call> serve(const TensorsRequest& request, std::shared_ptr<TensorSink> sink) = 0;
};

}  // namespace kolo::detail
