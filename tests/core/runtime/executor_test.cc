#include <kolo/core/runtime/executor.h>

#include <gmock/gmock.h>

#include <chrono>
#include <set>
#include <thread>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/session.h>
#include <tests/core/stub_vote.h>
#include <tests/core/test_ops.h>

namespace kolo {
namespace {

using testing::add;
using ::testing::AllOf;
using testing::call;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Calls in the order in which they happened.
class Calls {
 public:
  Calls() {
    testing::on_call = [this](std::int64_t tag) {
      MutexLock lock(mutex_);
      tags_.push_back(tag);
      threads_.insert(std::this_thread::get_id());
    };
  }
  ~Calls() {
    testing::on_call = [](std::int64_t) {};
  }
  std::vector<std::int64_t> tags() {
    MutexLock lock(mutex_);
    return tags_;
  }
  std::size_t threads() {
    MutexLock lock(mutex_);
    return threads_.size();
  }

 private:
  Mutex mutex_;
  std::vector<std::int64_t> tags_ KOLO_GUARDED_BY(mutex_);
  std::set<std::thread::id> threads_ KOLO_GUARDED_BY(mutex_);
};

TEST(Executor, RunsReadyNodesInTheOrderOfCreationOnOneThread) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s, 1), b = call(s, 2), c = call(s, 3, {b}), d = call(s, 4, {a, c});
  Calls calls;
  Session(graph, {.inter_op_parallelism_threads = 1, .use_per_session_threads = true}).run(d);
  EXPECT_THAT(calls.tags(), ElementsAre(1, 2, 3, 4));
}

TEST(Executor, RunsEachNodeOnceWhateverTheNumberOfItsConsumers) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s, 1);
  Outputs sums;
  for (int i = 0; i < 50; ++i) sums.push_back(add(s, a, a));
  Output total = sums[0];
  for (int i = 1; i < 50; ++i) total = add(s, total, sums[i]);
  Calls calls;
  testing::additions = 0;
  Session session(graph, {.inter_op_parallelism_threads = 3, .use_per_session_threads = true});
  EXPECT_EQ(session.run(total).value<float>(), 100);
  EXPECT_THAT(calls.tags(), ElementsAre(1));
  EXPECT_EQ(testing::additions, 99);
}

TEST(Executor, RunsIndependentNodesOnSeveralThreadsAtOnce) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s, 1), b = call(s, 2);
  // Each node waits until the other has started: on one thread the deadline would pass.
  std::atomic<int> started{0};
  testing::on_call = [&](std::int64_t) {
    ++started;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (started < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    if (started < 2) throw DeadlineExceededError("the other node did not start");
  };
  Session session(graph, {.inter_op_parallelism_threads = 2, .use_per_session_threads = true});
  EXPECT_EQ(session.run({a, b}).size(), 2u);
  testing::on_call = [](std::int64_t) {};
}

TEST(Executor, NamesTheNodeThatFailed) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s.name_scope("tower"), 1);
  testing::on_call = [](std::int64_t) { throw OutOfRangeError("no more digits"); };
  Session session(graph);
  EXPECT_THAT([&] { session.run(a); },
              ThrowsMessage<OutOfRangeError>(AllOf(HasSubstr("no more digits"), HasSubstr("\"tower/call1\""),
                                                   HasSubstr("TestCall"), HasSubstr("device:CPU:0"))));
  testing::on_call = [](std::int64_t) {};
}

TEST(Executor, StartsNothingAfterTheFirstFailure) {
  Graph graph;
  const Scope s(graph);
  Output x = call(s, 1);
  for (int i = 2; i < 6; ++i) x = call(s, i, {x});
  std::vector<std::int64_t> seen;
  testing::on_call = [&](std::int64_t tag) {
    seen.push_back(tag);
    if (tag == 3) throw InternalError("third");
  };
  Session session(graph, {.inter_op_parallelism_threads = 1, .use_per_session_threads = true});
  EXPECT_THROW(session.run(x), InternalError);
  EXPECT_THAT(seen, ElementsAre(1, 2, 3));
  testing::on_call = [](std::int64_t) {};
  EXPECT_EQ(session.run(x).value<float>(), 5) << "the session goes on after a failed run";
}

TEST(Executor, OverlapsAsynchronousNodesWithOthers) {
  Graph graph;
  const Scope s(graph);
  const Output slow = s.add("TestAsync", {call(s, 1)}, {{"tag", 2}});
  const Output other = call(s, 3);
  std::atomic<bool> other_ran{false};
  testing::on_call = [&](std::int64_t tag) {
    if (tag == 3) other_ran = true;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (tag == 2 && !other_ran && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    if (tag == 2 && !other_ran) throw DeadlineExceededError("the executor waited for the asynchronous node");
  };
  Session session(graph, {.inter_op_parallelism_threads = 1, .use_per_session_threads = true});
  EXPECT_EQ(session.run({slow, other})[0].value<float>(), 1);
  testing::on_call = [](std::int64_t) {};
}

TEST(Executor, WaitsForAsynchronousNodesUnderWayWhenAnotherFails) {
  Graph graph;
  const Scope s(graph);
  const Output slow = s.add("TestAsync", {call(s, 1)}, {{"tag", 2}});
  const Output failing = call(s, 3);
  std::atomic<bool> failed{false}, slow_ended{false};
  testing::on_call = [&](std::int64_t tag) {
    if (tag == 3) {
      failed = true;
      throw AbortedError("third");
    }
    while (tag == 2 && !failed) std::this_thread::yield();
    if (tag == 2) slow_ended = true;
  };
  Session session(graph, {.inter_op_parallelism_threads = 1, .use_per_session_threads = true});
  EXPECT_THROW(session.run({slow, failing}), AbortedError);
  EXPECT_TRUE(slow_ended);
  testing::on_call = [](std::int64_t) {};
}

// A node that other ranks have a part in: it completes when they are told of a failure.
struct Shared {
  std::atomic<bool> starting{false}, told{false}, told_while_starting{false};
  Completion done;
} shared;

class SharedKernel final : public AsyncKernel {
 public:
  void start(KernelContext&, Completion done) override {
    shared.done = done;
    shared.starting = true;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    while (!shared.told && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    shared.told_while_starting = shared.told.load();
  }
};

class SharedVote final : public testing::StubVote {
 public:
  void leave(StepFlag, const std::string&) override {
    shared.told = true;
    if (!shared.told_while_starting) shared.done();
  }
};

const RegisterOp shared_op(OpSchema("TestShared").input("x", {DType::f32}).output("y").stateful());
const RegisterKernel shared_kernel("TestShared", "CPU", {}, KernelFactory([](KernelInit&) {
                                     return std::make_unique<SharedKernel>();
                                   }));
const RegisterVote shared_vote("TestShared", [](const Node&, const DeviceSet&) -> std::shared_ptr<StepVote> {
  return std::make_shared<SharedVote>();
});

TEST(Executor, TellsTheOtherRanksOfAFailureOnceNoKernelIsBeingStarted) {
  Graph graph;
  const Scope s(graph);
  const Output failing = call(s, 1), waiting = s.add("TestShared", {constant(s, 1.0f)});
  testing::on_call = [](std::int64_t) {
    while (!shared.starting) std::this_thread::yield();
    throw DataLossError("a bad file");
  };
  Session session(graph, {.inter_op_parallelism_threads = 2, .use_per_session_threads = true});
  for (int run = 0; run < 10; ++run) {
    shared.starting = shared.told = shared.told_while_starting = false;
    EXPECT_THROW(session.run({failing, waiting}), DataLossError);
    EXPECT_TRUE(shared.told);
    ASSERT_FALSE(shared.told_while_starting);
  }
  testing::on_call = [](std::int64_t) {};
}

// A node that waits for other ranks alone, on a machine where each look at them takes a millisecond. It
// completes when another thread is to look.
struct Awaited {
  std::atomic<int> looks{0};
  Completion done;
} awaited;

class AwaitedKernel final : public AsyncKernel {
 public:
  void start(KernelContext&, Completion done) override { awaited.done = done; }
};

class AwaitedVote final : public testing::StubVote {
 public:
  Waits advance() override {
    ++awaited.looks;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Waits::still;
  }
  void hand_over() override { awaited.done(); }
};

const RegisterOp awaited_op(OpSchema("TestAwaited").input("x", {DType::f32}).output("y").stateful());
const RegisterKernel awaited_kernel("TestAwaited", "CPU", {}, KernelFactory([](KernelInit&) {
                                      return std::make_unique<AwaitedKernel>();
                                    }));
const RegisterVote awaited_vote("TestAwaited",
                                [](const Node&, const DeviceSet&) -> std::shared_ptr<StepVote> {
                                  return std::make_shared<AwaitedVote>();
                                });

// Until then nobody asks for ranks that are missing: 2,000 looks would take two seconds.
TEST(Executor, LetsAnotherThreadLookForTheOtherRanksBeforeLong) {
  Graph graph;
  const Scope s(graph);
  const Operation waiting = s.add("TestAwaited", {constant(s, 1.0f)});
  Session(graph, {.inter_op_parallelism_threads = 1, .use_per_session_threads = true}).run(waiting);
  EXPECT_GT(awaited.looks, 0);
  EXPECT_LT(awaited.looks, 1000);
}

// Kernels that count how many of them there are.
class LivingKernel final : public Kernel {
 public:
  static inline std::atomic<int> alive{0};
  LivingKernel() { ++alive; }
  ~LivingKernel() override { --alive; }
  void compute(KernelContext& context) override { context.output(0).copy_from(context.input(0)); }
};
const RegisterOp living_op(OpSchema("TestLiving").input("x", {DType::f32}).output("y").stateful());
const RegisterKernel living_kernel("TestLiving", "CPU", {}, KernelFactory([](KernelInit&) {
                                     return std::make_unique<LivingKernel>();
                                   }));

TEST(Executor, SurvivesAThousandRunsFromSixteenThreadsWithInjectedFailures) {
  constexpr int kThreads = 16, kRuns = 63;
  Graph graph;
  const Scope s(graph);
  Outputs values;
  for (int i = 0; i < 20; ++i)
    values.push_back(call(s, i, values.empty() ? Outputs{} : Outputs{values[i / 2]}, {2000}));
  Output total = values[0];
  for (int i = 1; i < 20; ++i) total = add(s, total, values[i]);
  total = s.add("TestLiving", {total});
  std::atomic<int> count{0};
  testing::on_call = [&](std::int64_t) {
    if (++count % 137 == 0) throw UnavailableError("injected");
  };
  Session session(graph, {.inter_op_parallelism_threads = 3, .use_per_session_threads = true});
  std::atomic<int> right{0}, failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kRuns; ++i) {
        try {
          const Tensor result = session.run(total);
          if (result.data<float>()[1999] == 190) ++right;
        } catch (const UnavailableError&) {
          ++failed;
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right + failed, kThreads * kRuns);
  EXPECT_GT(failed, 0);
  EXPECT_LE(LivingKernel::alive, kThreads) << "a frame for each run under way, and no more";
  session.close();
  EXPECT_EQ(LivingKernel::alive, 0);
  testing::on_call = [](std::int64_t) {};
}

TEST(Executor, SurvivesFailuresOfAsynchronousNodesAmongOthers) {
  Graph graph;
  const Scope s(graph);
  Outputs values;
  for (int i = 0; i < 6; ++i) {
    const Output ready = call(s, i, values.empty() ? Outputs{} : Outputs{values[i / 2]});
    values.push_back(s.add("TestAsync", {ready}, {{"tag", 100 + i}}));
  }
  std::atomic<int> count{0};
  testing::on_call = [&](std::int64_t) {
    if (++count % 29 == 0) throw UnavailableError("injected");
  };
  Session session(graph, {.inter_op_parallelism_threads = 2, .use_per_session_threads = true});
  int failed = 0;
  for (int i = 0; i < 200; ++i) {
    try {
      const auto results = session.run(values);
      for (int k = 0; k < 6; ++k) ASSERT_EQ(results[k].value<float>(), k);
    } catch (const UnavailableError&) {
      ++failed;
    }
  }
  EXPECT_GT(failed, 0);
  EXPECT_LT(failed, 200);
  testing::on_call = [](std::int64_t) {};
}

TEST(Executor, RecordsWhenEachNodeRan) {
  Graph graph;
  const Scope s(graph);
  const Output y = call(s, 2, {call(s, 1)});
  RunMetadata metadata;
  Session(graph).run({y}, {}, {.trace_level = TraceLevel::full_trace}, &metadata);
  const StepTrace& trace = metadata.step_stats;
  ASSERT_EQ(trace.events.size(), 2u);
  EXPECT_EQ(trace.events[0].name, "call1");
  EXPECT_LE(trace.events[0].end, trace.events[1].start);
  EXPECT_THAT(chrome_trace_json(trace, 3),
              AllOf(HasSubstr("\"traceEvents\""), HasSubstr("\"pid\":3"), HasSubstr("\"call2\"")));
}

}  // namespace
}  // namespace kolo
