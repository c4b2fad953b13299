// The thread on which all that gRPC does for this process ends.
#pragma once

#include <memory>

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_builder.h>

#ifdef KOLO_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace kolo::detail {

/// What was done before gRPC was given `object` happened before gRPC gives it back. The thread sanitizer,
/// which does not see into gRPC's libraries, is told so.
inline void hand_over([[maybe_unused]] void* object) {
#ifdef KOLO_THREAD_SANITIZER
  __tsan_release(object);
#endif
}
inline void take_over([[maybe_unused]] void* object) {
#ifdef KOLO_THREAD_SANITIZER
  __tsan_acquire(object);
#endif
}

/// What happens when an operation of gRPC's is over. One is for one operation at a time.
class Completion {
 public:
  Completion() = default;
  virtual ~Completion() = default;
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  /// What gRPC is to be given when the operation begins.
  void* tag() {
    hand_over(this);
    return this;
  }
  void complete(bool ok) {
    take_over(this);
    completed(ok);
  }

 private:
  /// On the queue's thread, which it must not block, and from which an exception ends the process. May
  /// destroy this. ok: what gRPC says of the operation.
  virtual void completed(bool ok) = 0;
};

/// A member function of the one that begins the operation.
template <typename Owner>
class CompletionOf final : public Completion {
 public:
  using Hook = void (Owner::*)(bool ok);
  CompletionOf(Owner& owner, Hook hook) : owner_(owner), hook_(hook) {}

 private:
  void completed(bool ok) override { (owner_.*hook_)(ok); }
  Owner& owner_;
  const Hook hook_;
};

/// A completion queue of gRPC's and the one thread that takes from it. Calls under way hold it. Any thread.
///
/// A process has one, for the calls that it makes and those that come to its server. A process in which
/// several threads wait in gRPC pays for it in each call: the thread that takes an event wakes another one
/// first, which watches the sockets meanwhile. gRPC's own callbacks have two such threads and more: an empty
/// run took 200 us with them and takes 75 to 125 with one (docs/clusters.md).
class PolledQueue {
 public:
  /// For calls that this process makes: the newest server's, or one of its own where there was none yet.
  static std::shared_ptr<PolledQueue> of_process();
  /// For the calls of a server that is being built.
  static std::shared_ptr<PolledQueue> of_server(grpc::ServerBuilder& builder);
  /// That server has started.
  static void use_for_process(std::shared_ptr<PolledQueue> queue);

  explicit PolledQueue(std::unique_ptr<grpc::CompletionQueue> queue);
  /// Its thread, which may be this one, ends.
  ~PolledQueue();
  PolledQueue(const PolledQueue&) = delete;
  PolledQueue& operator=(const PolledQueue&) = delete;
  grpc::CompletionQueue* get() const { return queue_; }
  /// Null where it is no server's.
  grpc::ServerCompletionQueue* for_server() const { return for_server_; }

 private:
  grpc::CompletionQueue* const queue_;  // the thread's
  grpc::ServerCompletionQueue* for_server_ = nullptr;
};

}  // namespace kolo::detail
