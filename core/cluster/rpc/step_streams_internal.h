// Values of a step that ride on the call that runs a part: between a master's task and another one there is
// no call but that, whichever way they go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/kept_threads.h>
#include <kolo/core/cluster/worker/tensor_sink.h>
#include <kolo/core/cluster/worker/worker.h>

#include <kolo/core/cluster/rpc/outgoing_internal.h>

namespace kolo::detail {

/// Values on their way in, as one call brings them: known by key, received once somebody takes them.
class IncomingValues final : public PayloadTarget {
 public:
  /// keys: in the sender's order. from: for errors.
  IncomingValues(std::vector<std::string> keys, std::string from, const RpcLimits& limits);

  /// keys: the same ones, in the receiver's order. After end(): the receiver is told at once. Throws
  /// InvalidArgumentError for other keys, InternalError for a second receiver.
  void attach(const std::vector<std::string>& keys, std::shared_ptr<TensorReceiver> receiver)
      KOLO_EXCLUDES(mutex_);
  /// One message; with the last value the receiver is told the end. Throws what the receiver throws,
  /// CancelledError where there is none, and as PayloadReader.
  void read(const MessagePieces& message) KOLO_EXCLUDES(mutex_);
  bool complete() const { return missing_ == 0; }
  /// No more comes: tells the receiver, unless it knows. Without an error values that are missing are one.
  void end(std::exception_ptr error) KOLO_EXCLUDES(mutex_);

 private:
  Tensor memory_for(std::size_t key, DType dtype, const Shape& shape) override;
  void on_tensor(std::size_t key, Tensor value, bool dead, bool absent) override;
  void on_bytes(PayloadKind kind, std::string bytes) override;
  void check(std::size_t key) const;

  const std::vector<std::string> keys_;
  const std::string from_;
  PayloadReader reader_;
  std::vector<bool> came_;
  std::size_t missing_;
  std::vector<std::size_t> places_;             // written by attach(), before the first read()
  std::shared_ptr<TensorReceiver> reading_to_;  // during a read()
  Mutex mutex_;
  std::shared_ptr<TensorReceiver> receiver_ KOLO_GUARDED_BY(mutex_);
  bool attached_ KOLO_GUARDED_BY(mutex_) = false;
  bool ended_ KOLO_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ KOLO_GUARDED_BY(mutex_);
};

/// The calls of a process that bring values of steps. Any thread.
class StepStreams {
 public:
  struct Name {
    std::string session;
    std::int64_t step = 0;
    std::string sender;                             // task
    auto operator<=>(const Name&) const = default;  // NOLINT(modernize-use-nullptr): of clang-tidy 14
  };
  struct Stream {
    std::shared_ptr<IncomingValues> values;
    std::function<void()> read;  // begins to, once there is a receiver
  };

  /// threads: for what follows from a value that has been sent; outlive the steps.
  explicit StepStreams(KeptThreads& threads) : threads_(threads) {}
  KeptThreads& threads() { return threads_; }

  /// own: what this task sends to others.
  void set_own(std::weak_ptr<TensorSource> own) KOLO_EXCLUDES(mutex_);
  /// Null where this process has none (any more).
  std::shared_ptr<TensorSource> own() KOLO_EXCLUDES(mutex_);

  /// Throws AbortedError where there is such a one.
  void add(const Name& name, Stream stream) KOLO_EXCLUDES(mutex_);
  void remove(const Name& name) KOLO_EXCLUDES(mutex_);
  /// False where `sender` sends the step's values on no call of its own accord.
  bool receive(const TensorsRequest& request, const std::string& sender,
               const std::shared_ptr<TensorReceiver>& receiver) KOLO_EXCLUDES(mutex_);

 private:
  KeptThreads& threads_;
  Mutex mutex_;
  std::weak_ptr<TensorSource> own_ KOLO_GUARDED_BY(mutex_);
  std::map<Name, Stream> streams_ KOLO_GUARDED_BY(mutex_);
};

/// A value to be sent, whose owner goes on by `released`. The transport lets go in the midst of its own work:
/// what follows from it is then done on one of `threads`. A value that was copied is released here and now.
Outgoing lent_tensor(std::size_t key, const Tensor& value, std::size_t chunk_bytes, KeptThreads& threads,
                     std::function<void()> released);

}  // namespace kolo::detail
