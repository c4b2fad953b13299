// A queue of work that a device does in order, behind the back of the executor's threads.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace kolo {

/// Any thread. The destructor waits for what is still queued.
class Stream {
 public:
  /// How the end of what was queued is told, once, from any thread; with the error of a device that failed.
  using Done = std::function<void(std::exception_ptr error)>;

  virtual ~Stream() = default;
  /// Does `work` after all that was enqueued before it. Without native(), on a thread of the stream's own: it
  /// returns at once, and `work` must not throw nor wait for later work of the same stream. With native(),
  /// before it returns, one caller at a time, with the device current: `work` puts there what is to be done.
  virtual void enqueue(std::function<void()> work) = 0;
  /// Calls `done` when all that was enqueued before is done. `done` must not throw nor wait for the stream.
  virtual void when_done(Done done) = 0;
  /// The queue as its maker's functions take it; nullptr where kernels are what the stream runs.
  virtual void* native() const { return nullptr; }
};

/// A stream that is one thread of the host, named `name` (cut to 15 letters).
/// Throws ResourceExhaustedError if the system gives no thread.
std::unique_ptr<Stream> make_thread_stream(const std::string& name);

}  // namespace kolo
