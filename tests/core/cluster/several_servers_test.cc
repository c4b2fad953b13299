// Steps over several servers, connected by real sockets. Rows are those of CLUSTER.md's worked examples.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include <kolo/collectives/graph/group_ops.h>
#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/queues.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>

#include "servers_in_process.h"

namespace kolo {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

constexpr std::chrono::seconds kPatience{30};

Output number(const Scope& s, float value) { return constant(s, Tensor::scalar(value)); }
float value_of(const Tensor& tensor) { return tensor.value<float>(); }

/// In the process of the master it is called directly, or through a socket.
class SeveralServers : public ServersTest, public ::testing::WithParamInterface<bool> {
 protected:
  SessionConfig config() const { return GetParam() ? through_socket() : patient(); }
};

// Row 11.
TEST_P(SeveralServers, ValuesGoFromTaskToTaskAndToTheClient) {
  Graph graph;
  const Scope s(graph);
  const Output k = number(s.named("k").device("/job:ps/task:1"), 2.5f);
  const Scope on_worker = s.device("/job:worker/task:0");
  const Output m = mul(on_worker.named("m"), k, number(on_worker, 4));
  Session session(graph, target("worker1"), config());
  for (int i = 0; i < 3; ++i) {
    const auto results = session.run(std::vector<Fetch>{m, k});
    EXPECT_EQ(value_of(results[0]), 10);
    EXPECT_EQ(value_of(results[1]), 2.5f);
  }
}

TEST_P(SeveralServers, FedValuesReachTasksThatReadThem) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s, DType::f32, {3});
  const Output y = mul(s.device("/job:ps/task:0"), x, x);
  const Output z = add(s.device("/job:worker/task:0"), y, x);
  Session session(graph, target("worker1"), config());
  const Tensor result = session.run(z, {{x, Tensor::of<float>({3}, {1, 2, 3})}});
  EXPECT_EQ(result.span<float>()[0], 2);
  EXPECT_EQ(result.span<float>()[2], 12);
}

// Row 13.
// The master's task then has nothing else of the step.
TEST_P(SeveralServers, FedValueThatNothingReadsIsTaken) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s.named("x"), DType::f32, {});
  const Scope on_ps = s.device("/job:ps/task:1");
  const Variable v(on_ps.named("v"), number(on_ps, 1));
  const Operation more = group(on_ps, {assign_add(on_ps, v, number(on_ps, 1))});
  Session session(graph, target("worker0"), config());
  session.run(v.initializer());
  session.run(std::vector<Fetch>{more}, {{x, Tensor::scalar(3.0f)}});
  session.run(std::vector<Fetch>{more}, {{x, Tensor::scalar(3.0f)}});
  EXPECT_EQ(value_of(session.run(v)), 3);
}

TEST_P(SeveralServers, ReadsBeforeAndAfterAnUpdateAreTwoTransfers) {
  Graph graph;
  const Scope s(graph), ps = s.device("/job:ps/task:0"), worker = s.device("/job:worker/task:0");
  const Variable c(ps.named("c"), number(ps, 41));
  const Output r = add(worker.named("r"), c.ref(), number(worker, 0));
  const Output u = assign_add(ps.named("u"), c, number(ps, 1));
  const Output r2 = add(worker.named("r2"), c.ref(), number(worker, 0));
  const Output t = identity(worker.named("t").control_dependencies({u.node}), number(worker, 7));
  Session session(graph, target("worker1"), config());
  session.run(c.initializer());
  const auto results = session.run(std::vector<Fetch>{t, r, r2});
  EXPECT_EQ(value_of(results[0]), 7);
  EXPECT_EQ(value_of(results[1]), 41);
  EXPECT_EQ(value_of(results[2]), 42);
  EXPECT_EQ(value_of(session.run(c.read())), 42);
}

// Row 44.
TEST_P(SeveralServers, ShowOneStateOfAVariableThatOthersUpdate) {
  constexpr std::int64_t kElements = 1'000'000;
  Graph graph;
  const Scope s(graph), ps = s.device("/job:ps/task:0");
  const Variable v(ps.named("v"), zeros(ps, DType::f32, {kElements}));
  std::vector<Operation> assigns;
  for (const std::string place :
       {"/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0", "/job:worker/task:1"}) {
    const Output value =
        fill(s.device(place), DType::f32, {kElements}, static_cast<double>(assigns.size() + 1));
    assigns.emplace_back(assign(ps, v, value));
  }
  Session reader(graph, target("worker0"), config());
  reader.run(v.initializer());
  std::atomic<bool> stop = false;
  std::vector<std::jthread> writers;
  for (std::size_t i = 0; i < assigns.size(); ++i)
    writers.emplace_back([&, i] {
      Session session(graph, target(i % 2 == 0 ? "worker0" : "worker1"), config());
      while (!stop) session.run(assigns[i]);
    });
  const auto is_one_state = [](const Tensor& value) {
    const auto elements = value.span<float>();
    return std::all_of(elements.begin(), elements.end(), [&](float e) { return e == elements[0]; });
  };
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(is_one_state(reader.run(v.read()))) << i;
    EXPECT_TRUE(is_one_state(reader.get_variables({"v"}).at(0))) << i;
  }
  stop = true;
}

// Rows 16 and 17.
TEST_P(SeveralServers, VariablesOutliveSessionsUntilAReset) {
  Graph graph;
  const Scope s(graph), ps = s.device("/job:ps/task:0");
  const Variable v(ps.named("v"), number(ps, 12.5f));
  {
    Session first(graph, target("worker0"), config());
    first.run(v.initializer());
  }
  Session second(graph, target("worker0"), config());
  EXPECT_EQ(value_of(second.run(v.read())), 12.5f);
  Session::reset(target("worker0"), {}, config());
  EXPECT_THAT([&] { second.run(v.read()); }, ThrowsMessage<AbortedError>(HasSubstr("is not found")));
  Session third(graph, target("worker0"), config());
  EXPECT_THAT([&] { third.run(v.read()); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("uninitialized value v")));
}

// The run before it found nobody: what that attempt has left must not hide the task that is back.
TEST_P(SeveralServers, FirstRunAfterARestartReachesTheTask) {
  Graph graph;
  const Output k = number(Scope(graph).device("/job:ps/task:0"), 2.5f);
  Session session(graph, target("worker0"), config());
  session.run(k);
  kill("ps0");
  EXPECT_THROW(session.run(k), UnavailableError);
  EXPECT_THROW(session.run(k), UnavailableError);
  start("ps", 0);
  EXPECT_THAT([&] { session.run(k); },
              ThrowsMessage<AbortedError>(HasSubstr("expects a different device incarnation")));
}

// Row 18.
TEST_P(SeveralServers, ResetDropsTheContainersThatAreNamed) {
  Graph graph;
  const Scope s(graph), ps = s.device("/job:ps/task:0");
  const Variable u(ps.container("exp1").named("u"), number(ps, 3)), v(ps.named("v"), number(ps, 4));
  {
    Session first(graph, target("worker0"), config());
    first.run(u.initializer());
    first.run(v.initializer());
  }
  Session::reset(target("worker0"), {"exp1"}, config());
  Session second(graph, target("worker0"), config());
  EXPECT_THROW(second.run(u.read()), FailedPreconditionError);
  EXPECT_EQ(value_of(second.run(v.read())), 4);
}

// Row 19.
TEST_P(SeveralServers, VariableOfAnotherShapeIsRefused) {
  Graph first_graph, second_graph;
  const auto variable = [](Graph& graph, const Shape& shape) {
    const Scope ps = Scope(graph).device("/job:ps/task:0");
    return Variable(ps.named("v"), zeros(ps, DType::f32, shape));
  };
  const Variable v = variable(first_graph, {3, 2}), other = variable(second_graph, {3, 4});
  Session first(first_graph, target("worker0"), config());
  first.run(v.initializer());
  Session second(second_graph, target("worker1"), config());
  EXPECT_THAT([&] { second.run(other.initializer()); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Variable v is float [3,2] in container \"localhost\" of "
                            "/job:ps/replica:0/task:0; this graph declares float [3,4]")));
  EXPECT_EQ(first.run(v.read()).shape(), Shape({3, 2}));
}

// Row 21.
TEST_P(SeveralServers, ErrorOfAKernelNamesItsTaskAndEndsTheOthers) {
  Graph graph;
  const Scope s(graph), ps = s.device("/job:ps/task:1"), worker = s.device("/job:worker/task:0");
  const Output index = placeholder(s, DType::i32, {});
  const Output bad = gather(ps.named("bad"), zeros(ps, DType::f32, {4}), index);
  const FIFOQueue queue(worker.named("empty"), {DType::f32});
  const Output never = dequeue(worker, queue)[0];
  Session session(graph, target("worker1"), config());
  const auto step = [&] {
    session.run(std::vector<Fetch>{bad, never}, {{index, Tensor::scalar<std::int32_t>(9)}});
  };
  EXPECT_THAT(step, ThrowsMessage<InvalidArgumentError>(
                        AllOf(HasSubstr("From /job:ps/replica:0/task:1:"), HasSubstr("bad"))));
}

TEST_P(SeveralServers, StepThatTakesTooLongSaysWhatItWaitedFor) {
  Graph graph;
  const Scope s(graph), ps = s.device("/job:ps/task:0");
  const FIFOQueue queue(ps.named("empty"), {DType::f32});
  const Output element = dequeue(ps.named("take"), queue)[0];
  Session session(graph, target("worker0"), config());
  EXPECT_THAT(
      [&] { session.run(std::vector<Fetch>{element}, {}, RunOptions{.timeout_in_ms = 300}); },
      ThrowsMessage<DeadlineExceededError>(AllOf(HasSubstr("Timed out waiting for notification after "),
                                                 HasSubstr("waiting for /job:ps/replica:0/task:0 ("),
                                                 HasSubstr("nodes left, e.g. take ("))));
}

// Each task waits for a value of the other one: the one that computes is to blame. Where it is too busy to
// say that it computes, it is the one that did not answer.
TEST_P(SeveralServers, StepThatTakesTooLongNamesTheTaskThatComputes) {
  const std::string tasks[] = {"/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"};
  const std::int64_t time = 300 * env_int64("TEST_SLOWDOWN", 1, 1, 100);  // both parts have begun by then
  for (const int slow : {0, 1}) {
    Graph graph;
    const Scope s(graph), slow_one = s.device(tasks[slow]), other = s.device(tasks[1 - slow]);
    const auto for_ever = [](const Scope& s, const Outputs&) { return constant(s, Tensor::scalar(true)); };
    const auto square = [](const Scope& s, const Outputs& v) { return Outputs{matmul(s, v[0], v[0])}; };
    const Output some = random_uniform(slow_one, DType::f32, {500, 500});
    const Output product = while_loop(slow_one, for_ever, square, {some})[0];
    const Output there = add(other, reduce_sum(slow_one, product), constant(other, 1.0f));
    const Output back = add(slow_one, there, constant(slow_one, 1.0f));
    Session session(graph, target("worker0"), config());
    EXPECT_THAT([&] { session.run(std::vector<Fetch>{back}, {}, RunOptions{.timeout_in_ms = time}); },
                ThrowsMessage<DeadlineExceededError>(
                    AnyOf(EndsWith("waiting for " + tasks[slow]), StartsWith("From " + tasks[slow] + ":"))));
  }
}

// What a task keeps of a run that has ended would hold up its server for ever.
TEST_P(SeveralServers, ServerStopsAfterRunsThatEndedWhileTheirValuesWereOnTheWay) {
  Graph graph;
  const Scope s(graph), ps = s.device("/job:ps/task:0");
  const Variable v(ps.named("v"), fill(ps, DType::f32, {16 << 20}, 0.5));
  const Output value = v.read();
  Session session(graph, target("worker0"), config());
  session.run(v.initializer());
  session.run(value);
  int ended = 0;
  for (int ms = 1; ms <= 20; ++ms) {
    try {
      session.run(std::vector<Fetch>{value}, {}, RunOptions{.timeout_in_ms = ms});
    } catch (const DeadlineExceededError&) {
      ++ended;
    }
  }
  EXPECT_GT(ended, 0);
  session.close();
  auto stopped = std::async(std::launch::async, [&] { kill("ps0"); });
  EXPECT_EQ(stopped.wait_for(kPatience), std::future_status::ready);
}

TEST_P(SeveralServers, CloseAndStopTokensEndRunsOfOtherThreads) {
  Graph graph;
  const Scope s(graph), ps = s.device("/job:ps/task:0");
  const FIFOQueue queue(ps.named("empty"), {DType::f32});
  const Output element = dequeue(ps, queue)[0];
  const Output size = queue_size(ps, queue);
  Session session(graph, target("worker0"), config());
  std::stop_source stop;
  auto stopped = std::async(std::launch::async, [&] {
    session.run(std::vector<Fetch>{element}, {}, RunOptions{.stop_token = stop.get_token()});
  });
  auto closed = std::async(std::launch::async, [&] { session.run(element); });
  session.run(size);
  stop.request_stop();
  ASSERT_EQ(stopped.wait_for(kPatience), std::future_status::ready);
  EXPECT_THAT([&] { stopped.get(); }, ThrowsMessage<CancelledError>(HasSubstr("stop_token")));
  session.close();
  ASSERT_EQ(closed.wait_for(kPatience), std::future_status::ready);
  // It may not have begun before the session was closed.
  EXPECT_THROW(closed.get(), Error);
  EXPECT_THAT([&] { session.run(size); },
              ThrowsMessage<FailedPreconditionError>(
                  AllOf(HasSubstr("Session is closed."), HasSubstr("Attempted to use a closed Session."))));
}

TEST_P(SeveralServers, GraphMayGrowBetweenRuns) {
  Graph graph;
  const Scope s(graph), ps = s.device("/job:ps/task:0");
  const Output a = number(ps, 1);
  Session session(graph, target("worker0"), config());
  EXPECT_EQ(value_of(session.run(a)), 1);
  const Output b = add(s.device("/job:worker/task:1"), a, a);
  EXPECT_EQ(value_of(session.run(b)), 2);
}

TEST_P(SeveralServers, CallablesRunWithOtherValuesEachTime) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s, DType::f32, {});
  const Output y = mul(s.device("/job:ps/task:0"), x, x);
  Session session(graph, target("worker0"), config());
  const Callable square = session.make_callable({.feeds = {x}, .fetches = {y}});
  for (const float value : {2.0f, 3.0f})
    EXPECT_EQ(value_of(square({Tensor::scalar(value)})[0]), value * value);
}

TEST_P(SeveralServers, VariablesAreReadAndWrittenByName) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.device("/job:ps/task:0").named("v"), number(s, 1)),
      w(s.device("/job:ps/task:1").named("w"), number(s, 2));
  Session session(graph, target("worker0"), config());
  EXPECT_FALSE(session.get_variables({"v", "w"})[1]);
  session.set_variables({{"v", Tensor::scalar(5.0f)}, {"w", Tensor::scalar(6.0f)}});
  const auto values = session.get_variables({"w", "v"});
  EXPECT_EQ(value_of(values[0]), 6);
  EXPECT_EQ(value_of(values[1]), 5);
  EXPECT_EQ(value_of(session.run(add(s, v.read(), w.read()))), 11);
}

TEST_P(SeveralServers, MetadataTellsOfAllTasks) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s, DType::f32, {});
  const Output far = mul(s.named("far").device("/job:ps/task:0"), x, x);
  const Output near = add(s.named("near").device("/job:worker/task:0"), far, far);
  Session session(graph, target("worker0"), config());
  RunMetadata metadata;
  session.run(std::vector<Fetch>{near}, {{x, Tensor::scalar(2.0f)}},
              RunOptions{.trace_level = TraceLevel::full_trace}, &metadata);
  std::map<std::string, int> processes;
  for (const TraceEvent& event : metadata.step_stats.events) processes[event.name] = event.process;
  EXPECT_EQ(processes.at("near"), 0);
  EXPECT_GT(processes.at("far"), 0);
}

// Row 20.
TEST_P(SeveralServers, RefuseOpsThatReduceOverRanks) {
  Graph graph;
  const Scope s(graph), worker = s.device("/job:worker/task:0");
  const Outputs reduced =
      group_allreduce(worker.named("grads"), {constant(worker, Tensor::of<float>({2}, {1, 2}))}, {"w"});
  EXPECT_THAT(
      [&] {
        Session session(graph, target("worker0"), config());
        session.run(reduced[0]);
      },
      ThrowsMessage<UnimplementedError>(HasSubstr("grads (GroupAllReduce) reduces over MPI ranks")));
}

TEST_P(SeveralServers, TaskThatIsAwayIsNamedAndMayComeBack) {
  Graph graph;
  const Scope s(graph), ps = s.device("/job:ps/task:0");
  const Output a = add(ps, number(ps, 1), number(ps, 2));
  Session session(graph, target("worker0"), config());
  session.run(a);
  kill("ps0");
  EXPECT_THAT([&] { session.run(a); },
              ThrowsMessage<UnavailableError>(HasSubstr("From /job:ps/replica:0/task:0:")));
}

// Row 41.
TEST_P(SeveralServers, RestartedTaskBreaksTheSessionAndANewOneWorks) {
  Graph graph;
  const Scope s(graph), ps = s.device("/job:ps/task:0");
  const Output a = add(ps, number(ps, 1), number(ps, 2));
  Session session(graph, target("worker0"), config());
  session.run(a);
  start("ps", 0);
  EXPECT_THAT([&] { session.run(a); },
              ThrowsMessage<AbortedError>(
                  AllOf(HasSubstr("different device incarnation"), HasSubstr("/job:ps/replica:0/task:0"))));
  Session second(graph, target("worker0"), config());
  EXPECT_EQ(value_of(second.run(a)), 3);
}

INSTANTIATE_TEST_SUITE_P(Clients, SeveralServers, ::testing::Bool(),
                         [](const auto& of) { return of.param ? "ThroughASocket" : "InTheProcess"; });

}  // namespace
}  // namespace kolo
