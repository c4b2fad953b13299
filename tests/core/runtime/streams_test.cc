// Devices that run ahead of the host, on virtual GPUs: what the host waits for, and what it need not wait
// for.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/runtime/session_state.h>
#include <kolo/core/runtime/stream_kernels.h>
#include <tests/core/counted_loop.h>
#include <tests/core/test_ops.h>
#include <tests/core/wait_op.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using testing::call;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;
using namespace std::chrono_literals;

SessionConfig with_gpus(int gpus) {
  SessionConfig config;
  config.virtual_gpus.assign(static_cast<std::size_t>(gpus), {.total_bytes = std::int64_t{1} << 30});
  return config;
}

// The tags of the calls, in the order of their ends; call `slow` takes a while.
class Calls {
 public:
  explicit Calls(std::int64_t slow, std::chrono::milliseconds pause = 30ms) {
    testing::on_call = [this, slow, pause](std::int64_t tag) {
      if (tag == slow) std::this_thread::sleep_for(pause);
      MutexLock lock(mutex_);
      tags_.push_back(tag);
    };
  }
  ~Calls() {
    testing::on_call = [](std::int64_t) {};
  }
  std::vector<std::int64_t> tags() {
    MutexLock lock(mutex_);
    return tags_;
  }

 private:
  Mutex mutex_;
  std::vector<std::int64_t> tags_;
};

TEST(StreamsOfAStep, LetTheHostGoOnBesideAKernelOfAGpu) {
  Graph graph;
  const Scope s(graph);
  const Output slow = call(s.device("/gpu:0"), 1), behind = call(s.device("/gpu:0"), 2, {slow});
  const Output host = call(s.device("/cpu:0"), 3);
  Session session(graph, with_gpus(1));
  Calls calls(1);
  session.run(std::vector<Fetch>{Operation(behind.node), Operation(host.node)});
  EXPECT_THAT(calls.tags(), ElementsAre(3, 1, 2));
}

TEST(StreamsOfAStep, AreDoneWhenTheRunReturns) {
  Graph graph;
  const Output slow = call(Scope(graph).device("/gpu:0"), 1);
  Session session(graph, with_gpus(1));
  Calls calls(1);
  for (int run = 1; run <= 3; ++run) {
    session.run(Operation(slow.node));
    EXPECT_EQ(calls.tags().size(), static_cast<std::size_t>(run));
  }
}

TEST(StreamsOfAStep, AreWaitedForByAHostNodeThatComesAfterThem) {
  Graph graph;
  const Scope s(graph);
  const Output slow = call(s.device("/gpu:0"), 1), other = call(s.device("/gpu:1"), 2);
  const Scope after = s.device("/cpu:0").control_dependencies({Operation(slow.node), Operation(other.node)});
  const Output host = call(after, 3);
  Session session(graph, with_gpus(2));
  Calls calls(1);
  session.run(host);
  EXPECT_THAT(calls.tags(), ElementsAre(2, 1, 3));
}

TEST(StreamsOfAStep, TellAnErrorAtTheEndAndDoNothingBehindIt) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Output failing = call(s, 7), behind = call(s, 8, {failing});
  const Variable v(s.named("v"), constant(s, 1.0f));
  const Output update = assign_add(s.control_dependencies({Operation(behind.node)}), v, constant(s, 1.0f));
  Session session(graph, with_gpus(1));
  session.run(v.initializer());
  std::atomic<bool> came_behind = false, fails = true;
  testing::on_call = [&](std::int64_t tag) {
    if (tag == 7 && fails) throw DataLossError("bad luck");
    if (tag == 8) came_behind = true;
  };
  EXPECT_THAT([&] { session.run(Operation(update.node)); },
              ThrowsMessage<DataLossError>(HasSubstr("bad luck [node \"call7\", TestCall on "
                                                     "/job:localhost/replica:0/task:0/device:GPU:0]")));
  EXPECT_FALSE(came_behind);
  EXPECT_EQ(session.run(v.read()).value<float>(), 1) << "no update behind the error";
  fails = false;
  session.run(Operation(update.node));
  EXPECT_TRUE(came_behind);
  EXPECT_EQ(session.run(v.read()).value<float>(), 2) << "the session goes on";
  testing::on_call = [](std::int64_t) {};
}

TEST(StreamsOfAStep, EndItWhereTheHostWaitsForSomethingElse) {
  Graph graph;
  const Scope s(graph);
  const Output failing = call(s.device("/gpu:0"), 7), endless = testing::wait_in(s.device("/cpu:0"));
  Session session(graph, with_gpus(1));
  testing::waiting.started = testing::waiting.cancelled = 0;
  testing::on_call = [](std::int64_t) {
    testing::wait_until_started(1);
    throw DataLossError("bad luck");
  };
  for (int run = 1; run <= 2; ++run) {
    testing::waiting.started = 0;
    EXPECT_THAT(
        [&] {
          session.run(std::vector<Fetch>{Operation(failing.node), endless});
        },
        ThrowsMessage<DataLossError>(HasSubstr("bad luck [node \"call7\"")));
    EXPECT_EQ(testing::waiting.cancelled, run);
  }
  testing::on_call = [](std::int64_t) {};
}

// The caller's thread is in the loop, whose own steps have no stream to ask.
TEST(StreamsOfAStep, EndALoopOfTheHostBesideThem) {
  Graph graph;
  const Scope s(graph);
  const Output failing = call(s.device("/gpu:0"), 7);
  const Output loop = testing::counted_loop(
      s.device("/cpu:0"), 1000, [](const Scope& body) -> Operation { return testing::wait_in(body); });
  SessionConfig config = with_gpus(1);
  config.inter_op_parallelism_threads = -1;
  Session session(graph, config);
  testing::waiting.started = 0;
  testing::on_call = [](std::int64_t) {
    testing::wait_until_started(1);
    throw DataLossError("bad luck");
  };
  EXPECT_THAT(
      [&] {
        session.run(std::vector<Fetch>{Operation(failing.node), loop});
      },
      ThrowsMessage<DataLossError>(HasSubstr("bad luck [node \"call7\"")));
  testing::on_call = [](std::int64_t) {};
}

TEST(StreamsOfAStep, DoNotBeginWhatIsLeftWhenTheHostFails) {
  Graph graph;
  const Scope s(graph);
  Output x = call(s.device("/gpu:0"), 0);
  for (int i = 1; i < 100; ++i) x = call(s.device("/gpu:0"), 1, {x});
  const Output failing = call(s.device("/cpu:0"), 7);
  Session session(graph, with_gpus(1));
  std::atomic<int> calls = 0;
  std::atomic<bool> fails = true;
  testing::on_call = [&](std::int64_t tag) {
    if (tag == 7 && fails) throw DataLossError("bad luck");
    ++calls;
    if (fails) std::this_thread::sleep_for(5ms);
  };
  EXPECT_THROW(session.run(std::vector<Fetch>{Operation(x.node), Operation(failing.node)}), DataLossError);
  EXPECT_LT(calls, 100);
  fails = false;
  calls = 0;
  session.run(std::vector<Fetch>{Operation(x.node), Operation(failing.node)});
  EXPECT_EQ(calls, 101) << "the session goes on";
  testing::on_call = [](std::int64_t) {};
}

TEST(StreamsOfAStep, GiveTheHostNoValueOfAStepThatFailedOnThem) {
  Graph graph;
  const Scope s(graph);
  const Output failing = call(s.device("/gpu:0"), 7), reader = call(s.device("/cpu:0"), 8, {failing});
  Session session(graph, with_gpus(1));
  std::atomic<bool> was_read = false;
  testing::on_call = [&](std::int64_t tag) {
    if (tag == 7) throw DataLossError("bad luck");
    was_read = true;
  };
  EXPECT_THAT(
      [&] { session.run(reader); },
      ThrowsMessage<DataLossError>(AllOf(HasSubstr("bad luck [node \"call7\""), Not(HasSubstr("_Recv")))));
  EXPECT_FALSE(was_read);
  testing::on_call = [](std::int64_t) {};
}

TEST(StreamsOfAStep, AreLeftWithNothingWhenTheHostFails) {
  Graph graph;
  const Scope s(graph);
  const Output slow = call(s.device("/gpu:0"), 1), failing = call(s.device("/cpu:0"), 7);
  Session session(graph, with_gpus(1));
  std::atomic<bool> was_done = false;
  testing::on_call = [&](std::int64_t tag) {
    if (tag == 7) throw DataLossError("bad luck");
    std::this_thread::sleep_for(30ms);
    was_done = true;
  };
  // Two at a time: the GPU's node may or may not have been reached when the other fails.
  for (int run = 0; run < 5; ++run) {
    was_done = false;
    EXPECT_THROW(session.run(std::vector<Fetch>{Operation(slow.node), Operation(failing.node)}),
                 DataLossError);
    const bool then = was_done;
    std::this_thread::sleep_for(60ms);
    EXPECT_EQ(was_done, then) << "something ran after the run had returned";
  }
  testing::on_call = [](std::int64_t) {};
}

TEST(StreamsOfAStep, CountTowardsItsDeadline) {
  Graph graph;
  const Output slow = call(Scope(graph).device("/gpu:0"), 1);
  Session session(graph, with_gpus(1));
  Calls calls(1, 300ms);  // long enough for the caller to have its turn on a busy machine
  EXPECT_THROW(session.run(std::vector<Fetch>{Operation(slow.node)}, {}, {.timeout_in_ms = 10}),
               DeadlineExceededError);
  EXPECT_EQ(calls.tags().size(), 1u) << "a kernel that runs is not interrupted";
  session.run(Operation(slow.node));
}

// A fetch puts a fence behind the kernel. What the step holds is lost: the kernel may still write to it.
TEST(StreamsOfAStep, EndThoughAGpuNoLongerAnswers) {
  Graph graph;
  const Output hung = call(Scope(graph).device("/gpu:0"), 1);
  Session session(graph, with_gpus(1));
  std::promise<void> answer;
  testing::on_call = [waits = answer.get_future().share()](std::int64_t) { waits.wait(); };
  EXPECT_THROW(session.run(std::vector<Fetch>{hung}, {}, {.timeout_in_ms = 50}), DeadlineExceededError);
  answer.set_value();
  session.run(Operation(hung.node));  // behind the other
  testing::on_call = [](std::int64_t) {};
}

TEST(StreamsOfAStep, BringTheConditionOfABranchToTheHost) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Output pred = placeholder(s, DType::boolean, {});
  const Output chosen = cond(
      s, pred, [](const Scope& inner) { return Outputs{call(inner, 1)}; },
      [](const Scope& inner) { return Outputs{call(inner, 2)}; })[0];
  Session session(graph, with_gpus(1));
  EXPECT_EQ(session.run(chosen, {{pred, Tensor::scalar(true)}}).value<float>(), 1);
  EXPECT_EQ(session.run(chosen, {{pred, Tensor::scalar(false)}}).value<float>(), 2);
}

TEST(StreamsOfAStep, SeeTheValueThatTheHostWritesIntoAVariable) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Variable v(s.named("v"), constant(s, Tensor::of<float>({2}, {1, 2})));
  Session session(graph, with_gpus(1));
  session.run(v.initializer());
  VariableStorage& storage = detail::storage_of(session, v);
  EXPECT_EQ(storage.device->local_name(), "GPU:0");
  detail::write_variable(storage, Tensor::of<float>({2}, {5, 6}));
  const Tensor read = detail::read_variable(storage);
  EXPECT_NE(read.raw(), storage.value.raw()) << "a copy";
  EXPECT_THAT(std::vector<float>(read.span<float>().begin(), read.span<float>().end()), ElementsAre(5, 6));
  EXPECT_EQ(session.run(v.read()).span<float>()[1], 6);
}

// A stream whose end comes as a test has it.
class EndlessStream : public Stream {
 public:
  EndlessStream() : Stream("endless") {}
  void enqueue(std::function<void()>) override {}
  std::unique_ptr<StreamEvent> make_event() override { return std::make_unique<StreamEvent>(); }
  std::unique_ptr<StreamGraph> capture(std::function<void(void*)>) override { return nullptr; }
  Done done_;

 private:
  void put_end(Done done) override { done_ = std::move(done); }
  void put_record(StreamEvent&) override {}
  void put_wait(StreamEvent&) override {}
  bool try_done(StreamEvent&) override { return false; }
};

TEST(StreamEnds, ComeToNothingWhenAsked) {
  EndlessStream silent;
  int asked = 0;
  EXPECT_FALSE(StreamEnds({&silent}).wait([&] { return ++asked == 3; })) << "while the caller looks";
  const auto later = std::chrono::steady_clock::now() + 50ms;
  EXPECT_FALSE(StreamEnds({&silent}).wait([&] { return std::chrono::steady_clock::now() > later; }));
  silent.done_(nullptr);  // late, and of no harm
}

// A step that failed has not put everything into its streams, so nothing waits for the second one but its
// end.
TEST(StreamEnds, AreThoseOfAllStreamsWhereNodesAreMissing) {
  class QuickStream final : public EndlessStream {
   public:
    int records = 0;

   private:
    void put_record(StreamEvent&) override { ++records; }
    bool try_done(StreamEvent&) override { return true; }
  } computing, copying;
  StreamEnds ends({&computing, &copying}, {true, false});
  const auto never = [] { return false; };
  EXPECT_TRUE(ends.wait(never));
  EXPECT_EQ(copying.records, 0);
  EXPECT_TRUE(ends.wait(never, /*is_whole=*/false));
  EXPECT_EQ(copying.records, 1);
}

TEST(StreamEnds, ThrowWhatADeviceFailsWith) {
  class FailingStream final : public EndlessStream {
    void put_end(Done done) override {
      done(std::make_exception_ptr(InternalError("an illegal memory access was encountered")));
    }
  } failing;
  EXPECT_THAT([&] { StreamEnds({&failing}).wait([] { return false; }); },
              ThrowsMessage<InternalError>(HasSubstr("illegal memory access")));
}

}  // namespace
}  // namespace kolo
