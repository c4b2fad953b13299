#include <pthread.h>

#include <thread>
#include <utility>

#include <kolo/core/base/mutex.h>

#include <kolo/core/cluster/rpc/polled_queue_internal.h>

namespace kolo::detail {
namespace {

struct OfProcess {
  Mutex mutex;
  std::shared_ptr<PolledQueue> queue KOLO_GUARDED_BY(mutex);
};
OfProcess& of_this_process() {
  // Never destroyed: calls may end while the process exits. `used`, so that the pointer is kept too: what it
  // leads to is no leak.
  [[gnu::used]] static OfProcess* const kept = std::make_unique<OfProcess>().release();
  return *kept;
}

void take_all(grpc::CompletionQueue& queue) {
  pthread_setname_np(pthread_self(), "kolo-transport");
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) static_cast<Completion*>(tag)->complete(ok);
}

}  // namespace

PolledQueue::PolledQueue(std::unique_ptr<grpc::CompletionQueue> queue) : queue_(queue.get()) {
  // Not joined: who lets go of the queue last may be on that thread.
  std::thread([queue = std::move(queue)] { take_all(*queue); }).detach();
}

PolledQueue::~PolledQueue() { queue_->Shutdown(); }

std::shared_ptr<PolledQueue> PolledQueue::of_process() {
  OfProcess& process = of_this_process();
  MutexLock lock(process.mutex);
  if (process.queue == nullptr)
    process.queue = std::make_shared<PolledQueue>(std::make_unique<grpc::CompletionQueue>());
  return process.queue;
}

std::shared_ptr<PolledQueue> PolledQueue::of_server(grpc::ServerBuilder& builder) {
  auto server_queue = builder.AddCompletionQueue();
  grpc::ServerCompletionQueue* const for_server = server_queue.get();
  auto made = std::make_shared<PolledQueue>(std::move(server_queue));
  made->for_server_ = for_server;
  return made;
}

void PolledQueue::use_for_process(std::shared_ptr<PolledQueue> queue) {
  OfProcess& process = of_this_process();
  MutexLock lock(process.mutex);
  process.queue.swap(queue);  // the one before is destroyed behind the lock
}

}  // namespace kolo::detail
