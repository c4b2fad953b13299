// A queue of work that a device does in order, beside the threads of the executor.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace kolo {

/// enqueue: any thread. The destructor waits for what is still queued.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Runs `work` after all that was enqueued before it, and returns at once. `work` must not throw and must
  /// not wait for later work of the same stream.
  virtual void enqueue(std::function<void()> work) = 0;
};

/// A stream that is one thread of the host, named `name` (cut to 15 letters).
/// Throws ResourceExhaustedError if the system gives no thread.
std::unique_ptr<Stream> make_thread_stream(const std::string& name);

}  // namespace kolo
