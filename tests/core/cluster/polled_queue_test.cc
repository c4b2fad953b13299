// One thread of a process takes what comes of all its calls.
#include <kolo/core/cluster/rpc/polled_queue_internal.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include <grpcpp/alarm.h>

#include <kolo/core/cluster/server.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/session.h>

#include "tests/support/thread_names.h"

namespace kolo::detail {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Not;
using testing::SizeIs;

constexpr char kThread[] = "kolo-transport";
constexpr std::chrono::seconds kPatience{30};

std::int64_t transport_threads() {
  const auto names = thread_names();
  return std::count(names.begin(), names.end(), kThread);
}

void wait_for_transport_threads(std::int64_t count) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (transport_threads() != count) {
    ASSERT_LT(std::chrono::steady_clock::now(), end)
        << transport_threads() << " threads instead of " << count;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Rings at once, on the queue's thread.
class Ring {
 public:
  Ring(PolledQueue& queue, std::function<void()> hook) : hook_(std::move(hook)) {
    alarm_.Set(queue.get(), std::chrono::system_clock::now(), completion_.tag());
  }

 private:
  void rung(bool /*ok*/) { hook_(); }
  const std::function<void()> hook_;
  CompletionOf<Ring> completion_{*this, &Ring::rung};
  grpc::Alarm alarm_;
};

TEST(PolledQueue, RunsWhatIsOverOneAfterTheOtherOnItsThread) {
  const auto queue = std::make_shared<PolledQueue>(std::make_unique<grpc::CompletionQueue>());
  // Without a lock: the thread sanitizer sees whether there is one thread.
  std::vector<std::thread::id> threads;
  std::promise<void> all;
  std::vector<std::unique_ptr<Ring>> rings;
  for (int i = 0; i < 100; ++i)
    rings.push_back(std::make_unique<Ring>(*queue, [&] {
      threads.push_back(std::this_thread::get_id());
      if (threads.size() == 100) all.set_value();
    }));
  ASSERT_EQ(all.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_THAT(threads, AllOf(SizeIs(100), Each(threads.front())));
}

TEST(PolledQueue, EndsItsThreadWhereverItIsLetGo) {
  wait_for_transport_threads(0);  // those of other tests
  auto queue = std::make_shared<PolledQueue>(std::make_unique<grpc::CompletionQueue>());
  wait_for_transport_threads(1);
  std::promise<void> rung;
  const Ring ring(*queue, [&] {
    queue.reset();
    rung.set_value();
  });
  ASSERT_EQ(rung.get_future().wait_for(kPatience), std::future_status::ready);
  wait_for_transport_threads(0);
}

// Two that wait in gRPC wake each other: a call took twice as long.
TEST(PolledQueue, IsOneForTheServerAndTheCallsOfAProcess) {
  const ClusterSpec cluster({{"worker", {"localhost:0"}}});
  const auto own = PolledQueue::of_process();
  for (int i = 0; i < 2; ++i) {
    const Server server(cluster, {.job_name = "worker", .task_index = 0});
    EXPECT_NE(PolledQueue::of_process(), own);
    Graph graph;
    const Output nothing = constant(Scope(graph), 1.0f);
    EXPECT_EQ(Session(graph, server.target()).run(nothing).value<float>(), 1.0f);
  }
  EXPECT_NE(PolledQueue::of_process()->for_server(), nullptr);
  wait_for_transport_threads(2);  // and `own`, which this test holds
  EXPECT_THAT(thread_names(), Not(Contains("nexting_thread")));
}

}  // namespace
}  // namespace kolo::detail
