// Trainings of several workers over real servers, and what is said while one waits. Rows are those of
// CLUSTER.md's worked examples.
#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>

#include <kolo/core/base/log.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/ops/queues.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/hooks.h>

#include "tests/core/cluster/servers_in_process.h"
#include "tests/core/cluster/sync_worker.h"
#include "tests/support/said.h"

namespace kolo {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ThreeWorkers : public ServersTest {
 protected:
  ThreeWorkers() : ServersTest(3) {}
  ~ThreeWorkers() override { unsetenv("KOLO_STALL_WARNING_S"); }

  std::future<std::vector<float>> train(int worker) {
    return std::async(std::launch::async, [this, worker] {
      return train_in_step({.cluster = cluster_,
                            .target = target("worker" + std::to_string(worker)),
                            .worker = worker,
                            .workers = 3});
    });
  }
};

// Row 39.
TEST_F(ThreeWorkers, AreToldWhoseGradientIsMissingAndWaitForIt) {
  setenv("KOLO_STALL_WARNING_S", "1", 1);
  start("worker", 0), start("worker", 1);
  ::testing::internal::CaptureStderr();
  auto chief = train(0), second = train(1);
  EXPECT_TRUE(is_said("2 of 3 gradients"));
  EXPECT_EQ(chief.wait_for(0s), std::future_status::timeout);
  EXPECT_EQ(second.wait_for(0s), std::future_status::timeout);
  start("worker", 2);
  const std::vector<float> w = train(2).get();
  // First values 1/(i+1), rates 0.3, 1.0 and 1.7, gradients 2 · rate · w.
  for (std::size_t i = 0; i < w.size(); ++i)
    EXPECT_NEAR(w[i], (1 - 0.01f * 2.0f) / static_cast<float>(i + 1), 1e-6);
  EXPECT_EQ(chief.get(), w);
  EXPECT_EQ(second.get(), w);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("\"w/grad_accum\" has 2 of 3 gradients (missing from /job:worker/task:2)"),
                    Not(HasSubstr("An error was raised"))));
}

/// One worker of an asynchronous training: w² / 2 by gradient descent, w on a parameter server. A run of
/// `train_when_let` tells by an element of `read` that it has its gradient, and updates when `let` has one.
struct Asynchronous {
  Asynchronous(const ClusterSpec& cluster, int worker)
      : s(Scope(graph).device(replica_device_setter(
            {.worker_device = "/job:worker/task:" + std::to_string(worker), .cluster = cluster}))),
        w(s.named("w"), constant(s, 4.0f)),
        read(queue("read")),
        let(queue("let" + std::to_string(worker))) {
    const std::vector<GradientPair> gradients =
        optimizer.compute_gradients(s, mul(s, mul(s, w.read(), w.read()), constant(s, 0.5f)));
    const Output gradient = gradients.at(0).gradient;
    train = optimizer.apply_gradients(s, gradients);
    const Operation told = enqueue(s.control_dependencies({gradient.node}), read, {constant(s, 1.0f)});
    const Output may = dequeue(s.control_dependencies({told}), let)[0];
    const std::vector<GradientPair> late{
        {identity(s.control_dependencies({may.node}), gradient), gradients.at(0).variable}};
    train_when_let = optimizer.apply_gradients(s, late);
    let_it = enqueue(s, let, {constant(s, 1.0f)});
    reads = queue_size(s, read);
  }
  FIFOQueue queue(const std::string& name) {
    return FIFOQueue(s.named(name).device("/job:ps/task:0"), {DType::f32}, {.shared_name = name});
  }

  Graph graph;
  Scope s;
  Variable w;
  FIFOQueue read, let;
  GradientDescentOptimizer optimizer{0.25};
  Operation train, train_when_let, let_it;
  Output reads;
};

class AsynchronousWorkers : public ServersTest {
 protected:
  AsynchronousWorkers() { a_.run(a_model_.w.initializer()); }
  static float value_of(Session& session, const Output& output) { return session.run(output).value<float>(); }

  Asynchronous a_model_{cluster_, 0}, b_model_{cluster_, 1};
  Session a_{a_model_.graph, target("worker0"), patient()}, b_{b_model_.graph, target("worker1"), patient()};
};

// Row 34.
TEST_F(AsynchronousWorkers, BothReadBeforeEitherUpdates) {
  auto a = std::async(std::launch::async, [this] { a_.run(a_model_.train_when_let); });
  auto b = std::async(std::launch::async, [this] { b_.run(b_model_.train_when_let); });
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (a_.run(a_model_.reads).value<std::int32_t>() < 2 && std::chrono::steady_clock::now() < end) {
  }
  a_.run(a_model_.let_it);
  a.get();
  EXPECT_EQ(value_of(b_, b_model_.w.read()), 3);
  b_.run(b_model_.let_it);
  b.get();
  EXPECT_EQ(value_of(a_, a_model_.w.read()), 2);
}

// Row 34, too.
TEST_F(AsynchronousWorkers, InTurnEachReadsWhatTheOtherHasWritten) {
  a_.run(a_model_.train);
  EXPECT_EQ(value_of(b_, b_model_.w.read()), 3);
  b_.run(b_model_.train);
  EXPECT_EQ(value_of(a_, a_model_.w.read()), 2.25);
}

/// A variable on a parameter server to which every run adds 3; its first value comes from a queue.
struct Adding {
  explicit Adding(const ClusterSpec& cluster)
      : s(Scope(graph).device(replica_device_setter({.cluster = cluster}))),
        late(s.named("late").device("/job:ps/task:0"), {DType::f32},
             {.shapes = {Shape()}, .shared_name = "late"}),
        w(s.named("w"), dequeue(s, late)[0]),
        step(get_or_create_global_step(s)),
        train(assign_add(s.control_dependencies(
                             {Operation(assign_add(s, step, constant(s, Tensor::scalar<std::int64_t>(1))))}),
                         w, constant(s, 3.0f))) {}
  Graph graph;
  Scope s;
  FIFOQueue late;
  Variable w, step;
  Output train;
};

class MonitoredOnServers : public ServersTest {
 protected:
  MonitoredOnServers() { set_log_level(LogLevel::info); }
  /// First values for as many initialisations.
  void give_first_values(float value, int times) {
    Adding model(cluster_);
    const Operation give = enqueue(model.s, model.late, {constant(model.s, value)});
    Session session(model.graph, target("worker0"), patient());
    for (int i = 0; i < times; ++i) session.run(give);
  }
  float run_as_chief(int steps, bool adopt) {
    Adding model(cluster_);
    MonitoredTrainingSession sess(model.graph,
                                  {.config = patient(), .master = target("worker0"), .adopt = adopt});
    for (int i = 0; i < steps; ++i) sess.run(model.train);
    const float w = sess.session().run(model.w.read()).value<float>();
    sess.close();
    return w;
  }
};

// Row 42.
TEST_F(MonitoredOnServers, WorkerStartsSoonAfterTheChiefHasInitialised) {
  using Clock = std::chrono::steady_clock;
  ::testing::internal::CaptureStderr();
  auto worker = std::async(std::launch::async, [this] {
    Adding model(cluster_);
    MonitoredTrainingSession sess(
        model.graph,
        {.master = target("worker1"), .is_chief = false, .recovery_wait_secs = .2, .max_wait_secs = 30});
    sess.run(model.train);
    return Clock::now();
  });
  auto chief = std::async(std::launch::async, [this] {
    Adding model(cluster_);
    MonitoredTrainingSession sess(model.graph, {.master = target("worker0")});
    return Clock::now();
  });
  EXPECT_TRUE(is_said("Waiting for model to be ready."));
  EXPECT_EQ(worker.wait_for(1s), std::future_status::timeout);
  EXPECT_EQ(chief.wait_for(0s), std::future_status::timeout);
  give_first_values(0, 1);
  const auto ready = chief.get();
  const double after = std::chrono::duration<double>(worker.get() - ready).count();
  RecordProperty("seconds_after_init", std::to_string(after));
  EXPECT_LT(after, 10) << "a worker must look again after recovery_wait_secs, not after its default";
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("Waiting for model to be ready."));
}

TEST_F(MonitoredOnServers, WorkerThatWaitsForItsChiefEndsInOrderWhenItIsToldTo) {
  Graph graph;
  const Scope s = Scope(graph).device("/job:ps/task:0");
  const Variable v(s.named("never_initialized"), constant(s, 1.0f));
  install_stop_signals();
  const std::jthread signal([] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    ::kill(::getpid(), SIGTERM);
  });
  MonitoredTrainingSession session(
      graph, {.master = target("worker1"), .is_chief = false, .recovery_wait_secs = .2, .max_wait_secs = 30});
  EXPECT_TRUE(session.should_stop());
  EXPECT_TRUE(session.stopped_on_request());
  EXPECT_THROW(session.run(v.read()), FailedPreconditionError);
  EXPECT_NO_THROW(session.close());
  clear_stop_signal();
}

TEST_F(MonitoredOnServers, WorkerThatIsToStartLateWaitsForTheChiefsStep) {
  give_first_values(0, 1);
  Adding model(cluster_);
  MonitoredTrainingSession chief(model.graph, {.config = patient(), .master = target("worker0")});
  auto worker = std::async(std::launch::async, [this] {
    Adding late(cluster_);
    MonitoredTrainingSession sess(late.graph, {.config = patient(),
                                               .hooks = {std::make_shared<GlobalStepWaiterHook>(3)},
                                               .master = target("worker1"),
                                               .is_chief = false,
                                               .recovery_wait_secs = .2});
    return sess.run(late.train).value<float>();
  });
  for (int i = 0; i < 2; ++i) chief.run(model.train);
  EXPECT_EQ(worker.wait_for(1s), std::future_status::timeout);
  chief.run(model.train);
  EXPECT_EQ(worker.get(), 12);
}

// Row 43.
TEST_F(MonitoredOnServers, ChiefThatComesAgainBeginsAnewUnlessItAdopts) {
  give_first_values(0, 2);
  EXPECT_EQ(run_as_chief(3, false), 9);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_as_chief(0, true), 9);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("initialising")));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_as_chief(0, false), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("initialising 2 variables that have values"), HasSubstr("global_step 3")));
}

}  // namespace
}  // namespace kolo
