// What ends a run before its time, and which threads a session may use.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stop_token>
#include <thread>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <tests/core/counted_loop.h>
#include <tests/core/test_ops.h>
#include <tests/core/wait_op.h>

namespace kolo {
namespace {

using testing::call;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using testing::wait_in;
using testing::wait_until_started;
using testing::waiting;

SessionConfig own_threads(int threads) {
  return {.inter_op_parallelism_threads = threads, .use_per_session_threads = true};
}

class SessionLimits : public ::testing::Test {
 protected:
  SessionLimits() { waiting.started = waiting.cancelled = 0; }
  Graph graph;
  const Scope s{graph};
  // Where a test's nodes wait for each other, or count threads: a GPU's stream has one, for one after the
  // other.
  const Scope on_threads = s.device("/cpu:0");
  const Output endless = wait_in(s);
};

TEST_F(SessionLimits, EndsARunWhoseTimeIsOver) {
  Session session(graph);
  EXPECT_THAT([&] { session.run({endless}, {}, {.timeout_in_ms = 20}); },
              ThrowsMessage<DeadlineExceededError>(HasSubstr("Timed out waiting for notification")));
  EXPECT_EQ(waiting.cancelled, 1);
}

// Its memory cannot be had at the first run, nor at the second one, which must not find half a variable.
TEST_F(SessionLimits, LeaveNoTraceOfAVariableThatDoesNotFit) {
#if defined(__SANITIZE_ADDRESS__) || defined(KOLO_THREAD_SANITIZER)
  GTEST_SKIP() << "a sanitizer ends the process where malloc would return null";
#endif
  const Scope here = s.device("/cpu:0");
  const Variable huge(here.named("huge"), fill(here, DType::f64, {std::int64_t{1} << 47}, 0.0));
  Session session(graph);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(session.run(huge.initializer()), Error);
  EXPECT_THROW(session.run(huge.read()), Error);
}

TEST_F(SessionLimits, TakesTheSessionsTimeUnlessTheRunHasItsOwn) {
  Session session(graph, {.operation_timeout_in_ms = 200});  // also to be opened in, on a cluster
  EXPECT_THROW(session.run(endless), DeadlineExceededError);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(session.run({endless}, {}, {.timeout_in_ms = 300}), DeadlineExceededError);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(300));
}

TEST_F(SessionLimits, EndsARunBetweenTwoKernelsWhenItsTimeIsOver) {
  Output x = call(s, 0);
  for (int i = 1; i < 100; ++i) x = call(s, i, {x});
  std::atomic<int> calls{0};
  testing::on_call = [&](std::int64_t) {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  Session session(graph);
  EXPECT_THROW(session.run({x}, {}, {.timeout_in_ms = 20}), DeadlineExceededError);
  EXPECT_LT(calls, 100);
  testing::on_call = [](std::int64_t) {};
  EXPECT_EQ(session.run(x).value<float>(), 99) << "the session goes on";
}

TEST_F(SessionLimits, CancelsRunsUnderWayWhenItIsClosed) {
  Session session(graph);
  std::atomic<int> cancelled{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      try {
        session.run(endless);
      } catch (const CancelledError& error) {
        cancelled += std::string(error.what()).find("Session::close()") != std::string::npos;
      }
    });
  wait_until_started(2);
  session.close();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cancelled, 2);
}

TEST_F(SessionLimits, EndsTheRunWhoseTokenIsAskedToStop) {
  Session session(graph);
  std::stop_source stop;
  std::atomic<bool> other_ended{false};
  std::thread other([&] {
    EXPECT_THAT([&] { session.run(endless); }, ThrowsMessage<CancelledError>(HasSubstr("Session::close()")));
    other_ended = true;
  });
  std::thread stopping([&] {
    wait_until_started(2);
    stop.request_stop();
  });
  EXPECT_THAT([&] { session.run({endless}, {}, {.stop_token = stop.get_token()}); },
              ThrowsMessage<CancelledError>(HasSubstr("The run was stopped by its stop_token.")));
  stopping.join();
  EXPECT_FALSE(other_ended);
  session.close();
  other.join();
}

TEST_F(SessionLimits, StartsNothingOfARunWhoseTokenHasBeenAskedToStop) {
  Session session(graph);
  std::stop_source stop;
  const Callable callable = session.make_callable({.fetches = {endless}}, {.stop_token = stop.get_token()});
  stop.request_stop();
  EXPECT_THROW(session.run({endless}, {}, {.stop_token = stop.get_token()}), CancelledError);
  EXPECT_THROW(callable(), CancelledError);
  EXPECT_EQ(waiting.started, 0);
}

TEST_F(SessionLimits, OutlivesTheTokenOfARunThatIsOver) {
  Session session(graph);
  std::stop_source stop;
  const Output two = call(s, 2);
  EXPECT_EQ(session.run({two}, {}, {.stop_token = stop.get_token()})[0].value<float>(), 2);
  stop.request_stop();
  EXPECT_EQ(session.run(two).value<float>(), 2);
}

// A loop in a loop, in whose iterations `effect` happens.
Output nested_loops(const Scope& s, const std::function<Operation(const Scope&)>& effect) {
  return testing::counted_loop(
      s, 1000, [&](const Scope& outer) -> Operation { return testing::counted_loop(outer, 1000, effect); });
}

TEST_F(SessionLimits, EndsAKernelThatWaitsInALoopWhenTheTimeIsOver) {
  const Output loop = nested_loops(s, wait_in);
  Session session(graph);
  for (int run = 1; run <= 2; ++run) {
    // Long enough for the kernel to have begun, on a busy machine too.
    EXPECT_THAT([&] { session.run({loop}, {}, {.timeout_in_ms = 300}); },
                ThrowsMessage<DeadlineExceededError>(HasSubstr("Timed out waiting for notification")));
    EXPECT_EQ(waiting.cancelled, run);
  }
}

TEST_F(SessionLimits, EndsALoopBetweenTwoKernelsWhenTheTimeIsOver) {
  const Output loop = nested_loops(s, [](const Scope& b) -> Operation {
    Output x = call(b, 0);
    for (int i = 1; i < 100; ++i) x = call(b, i, {x});
    return x;
  });
  std::atomic<int> calls{0};
  testing::on_call = [&](std::int64_t) {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  Session session(graph);
  EXPECT_THROW(session.run({loop}, {}, {.timeout_in_ms = 20}), DeadlineExceededError);
  EXPECT_LT(calls, 100);
  testing::on_call = [](std::int64_t) {};
}

TEST_F(SessionLimits, EndsAKernelThatWaitsInALoopWhenTheSessionIsClosed) {
  const Output loop = nested_loops(s, wait_in);
  Session session(graph);
  std::thread runner([&] {
    EXPECT_THAT([&] { session.run(loop); }, ThrowsMessage<CancelledError>(HasSubstr("Session::close()")));
  });
  wait_until_started(1);
  session.close();
  runner.join();
  EXPECT_EQ(waiting.cancelled, 1);
}

TEST_F(SessionLimits, EndsAKernelThatWaitsInALoopWhenANodeBesideTheLoopFails) {
  testing::on_call = [](std::int64_t) {
    wait_until_started(2);
    throw DataLossError("bad luck");
  };
  const Output failing = call(on_threads, 1);
  const Output first = nested_loops(s, wait_in), second = nested_loops(s, wait_in);
  Session session(graph, own_threads(3));
  EXPECT_THAT(
      [&] {
        session.run({first, failing, second});
      },
      ThrowsMessage<DataLossError>(HasSubstr("bad luck")));
  EXPECT_EQ(waiting.cancelled, 2);
  testing::on_call = [](std::int64_t) {};
}

TEST_F(SessionLimits, RefusesRunsAndCallablesOnceItIsClosed) {
  Session session(graph);
  const Output one = constant(s, 1.0f);
  const Callable callable = session.make_callable({.fetches = {one}});
  session.close();
  session.close();
  const auto refusal =
      ThrowsMessage<FailedPreconditionError>(HasSubstr("Attempted to use a closed Session."));
  EXPECT_THAT([&] { session.run(one); }, refusal);
  EXPECT_THAT([&] { callable(); }, refusal);
}

TEST_F(SessionLimits, ClosesAllOpenSessionsWhenTheyAreReset) {
  const Variable v(s.named("v"), constant(s, 1.0f));
  Session first(graph), second(graph);
  first.run(v.initializer());
  std::thread runner([&] {
    EXPECT_THAT([&] { second.run(endless); },
                ThrowsMessage<CancelledError>(HasSubstr("Session has been closed.")));
  });
  wait_until_started(1);
  Session::reset();
  runner.join();
  EXPECT_THAT([&] { first.run(v); }, ThrowsMessage<CancelledError>(HasSubstr("Session has been closed.")));
  Session third(graph);
  EXPECT_THROW(third.run(v), FailedPreconditionError) << "the variable's value is gone";
  EXPECT_THROW(Session::reset("grpc://somewhere:1"), NotFoundError);
}

TEST_F(SessionLimits, HaveTheFirstSessionsNumberOfThreadsUnlessTheyAreTheirOwn) {
  const Session first(graph, {.inter_op_parallelism_threads = 3});
  const int threads = first.inter_op_threads();  // an earlier test may have been the first
  const Session second(graph, {.inter_op_parallelism_threads = threads + 1});
  EXPECT_EQ(second.inter_op_threads(), threads);
  EXPECT_EQ(Session(graph, own_threads(threads + 1)).inter_op_threads(), threads + 1);
  EXPECT_EQ(Session(graph, {.inter_op_parallelism_threads = -1}).inter_op_threads(), 1);
  EXPECT_EQ(Session(graph, {.intra_op_parallelism_threads = 7}).intra_op_threads(), first.intra_op_threads());
}

TEST_F(SessionLimits, RefuseThreadsThatCannotBe) {
  EXPECT_THROW(Session(graph, {.intra_op_parallelism_threads = -1}), InvalidArgumentError);
  EXPECT_THROW(Session(graph, {.session_inter_op_thread_pool = {{.num_threads = -1}}}), InvalidArgumentError);
}

TEST_F(SessionLimits, RunOnTheCallersThreadAloneWhereTheyAreToldTo) {
  std::vector<std::thread::id> ids;
  Mutex mutex;
  testing::on_call = [&](std::int64_t) {
    MutexLock lock(mutex);
    ids.push_back(std::this_thread::get_id());
  };
  Outputs values;
  for (int i = 0; i < 20; ++i) values.push_back(call(on_threads, i));
  Session negative(graph, {.inter_op_parallelism_threads = -1});
  negative.run(values);
  Session pooled(graph, own_threads(3));
  pooled.run(std::vector<Fetch>(values.begin(), values.end()), {}, {.inter_op_thread_pool = -1});
  testing::on_call = [](std::int64_t) {};
  EXPECT_EQ(ids.size(), 40u);
  EXPECT_THAT(ids, ::testing::Each(std::this_thread::get_id()));
}

TEST_F(SessionLimits, PicksOneOfItsPoolsForEachRun) {
  Session session(graph, {.session_inter_op_thread_pool = {{.num_threads = 1}, {.num_threads = 2}}});
  EXPECT_EQ(session.inter_op_threads(), 1);
  const Output a = call(on_threads, 1), b = call(on_threads, 2);
  // Each node waits for the other: pool 1 has the threads for that.
  std::atomic<int> started{0};
  testing::on_call = [&](std::int64_t) {
    ++started;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (started < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  };
  session.run({a, b}, {}, {.inter_op_thread_pool = 1});
  testing::on_call = [](std::int64_t) {};
  EXPECT_EQ(started, 2);
  for (const int index : {2, -2})
    EXPECT_THAT([&] { session.run({a}, {}, {.inter_op_thread_pool = index}); },
                ThrowsMessage<InvalidArgumentError>(
                    HasSubstr("Invalid inter_op_thread_pool: " + std::to_string(index))));
}

TEST_F(SessionLimits, ShareAPoolByName) {
  const auto named = [&](int threads) {
    return SessionConfig{
        .session_inter_op_thread_pool = {{.num_threads = threads, .global_name = "of this test"}}};
  };
  const Session first(graph, named(3)), second(graph, named(3));
  EXPECT_EQ(second.inter_op_threads(), 3);
  EXPECT_THAT([&] { Session(graph, named(4)); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Pool of this test configured previously with num_threads=3; cannot re-configure "
                            "with num_threads=4")));
}

TEST_F(SessionLimits, KeepTheFieldsThatHaveNoEffect) {
  SessionConfig config;
  config.cluster_def = {{"worker", {{0, "host:1"}}}};
  config.placement_period = 3;
  config.rpc_options.use_rpc_for_inprocess_master = true;
  const Session session(graph, config);
  EXPECT_EQ(session.config().cluster_def.at("worker").at(0), "host:1");
  EXPECT_EQ(session.config().placement_period, 3);
  EXPECT_TRUE(session.config().rpc_options.use_rpc_for_inprocess_master);
}

// Shapes that come and go make plans; the session keeps so many.
struct CountedKernel final : Kernel {
  static inline std::atomic<int> alive{0};
  CountedKernel() { ++alive; }
  ~CountedKernel() override { --alive; }
  void compute(KernelContext& context) override { context.output(0).copy_from(context.input(0)); }
};
const RegisterOp counted_op(OpSchema("TestCounted").input("x", {DType::f32}).output("y").stateful());
const RegisterKernel counted_kernel("TestCounted", "CPU", {}, KernelFactory([](KernelInit&) {
                                      return std::make_unique<CountedKernel>();
                                    }));

TEST_F(SessionLimits, KeepsTheSixtyFourPlansThatWereUsedLast) {
  const Output x = placeholder(s, DType::f32, {-1}), y = s.add("TestCounted", {x});
  Session session(graph);
  const auto run = [&](int size) { session.run(y, {{x, Tensor::zeros(DType::f32, {size})}}); };
  for (int size = 0; size < 64; ++size) run(size);
  run(0);  // the oldest is used again
  EXPECT_EQ(CountedKernel::alive, 64);
  for (int size = 64; size < 100; ++size) run(size);
  EXPECT_EQ(CountedKernel::alive, 64);
  session.close();
  EXPECT_EQ(CountedKernel::alive, 0);
}

}  // namespace
}  // namespace kolo
