// Kernels that wait for something for an unknown time.
#pragma once

#include <string>
#include <vector>

namespace kolo {

/// A second base of an AsyncKernel that may wait for long. Without it a step that fails, is cancelled or runs
/// out of time waits until the kernel is done by itself.
class Cancellable {
 public:
  virtual ~Cancellable() = default;
  /// The step is over: what was started ends soon and calls its Completion, with or without an error. Called
  /// after start() has returned; the completion may have been called already. Any thread.
  virtual void cancel() = 0;
  /// What it waits for now, for people; "" where that is nothing, or is not known. workers: the tasks that
  /// send gradients. Any thread, between the making of the kernel and its end.
  virtual std::string waits_for(const std::vector<std::string>& /*workers*/) { return ""; }
};

}  // namespace kolo
