// Kernels that wait for something for an unknown time.
#pragma once

namespace kolo {

/// A second base of an AsyncKernel that may wait for long. Without it a step that fails, is cancelled or runs
/// out of time waits until the kernel is done by itself.
class Cancellable {
 public:
  virtual ~Cancellable() = default;
  /// The step is over: what was started ends soon and calls its Completion, with or without an error. Called
  /// after start() has returned; the completion may have been called already. Any thread.
  virtual void cancel() = 0;
};

}  // namespace kolo
