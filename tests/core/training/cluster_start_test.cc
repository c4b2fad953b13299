// Monitored sessions whose session stands on a (simulated) server.
#include <kolo/core/training/monitored_session.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"
#include "tests/support/simulated_server.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;
using testing_support::SimulatedServer;

constexpr char kServer[] = "simulated://a";

class ClusterStart : public testing::Test {
 protected:
  ClusterStart() {
    SimulatedServer::clear();
    set_log_level(LogLevel::info);
  }

  void train(const MonitoredTrainingSessionOptions& options, int steps) {
    MonitoredTrainingSession sess(model_.graph, options);
    for (int i = 0; i < steps; ++i) sess.run(model_.train);
    sess.close();
  }
  std::int64_t step_on_server() {
    Session session(model_.graph, kServer);
    return session.get_variables({"global_step"})[0].value<std::int64_t>();
  }

  CountingGraph model_;
  TemporaryDirectory folder_;
};

TEST_F(ClusterStart, ChiefInitialisesAndTheVariablesStay) {
  train({.master = kServer}, 3);
  EXPECT_EQ(step_on_server(), 3);
}

// Each read would be a call to another task: the step comes with the run.
TEST_F(ClusterStart, StepBringsTheGlobalStepForAllHooks) {
  MonitoredTrainingSession sess(model_.graph, {.checkpoint_dir = folder_.path(),
                                               .save_checkpoint_steps = 1000,
                                               .hooks = {std::make_shared<StopAtStepHook>(500)},
                                               .master = kServer});
  sess.run(model_.train);
  const int before = SimulatedServer::reads;
  for (int i = 0; i < 5; ++i) sess.run(model_.train);
  EXPECT_EQ(SimulatedServer::reads - before, 0);
  EXPECT_EQ(sess.global_step(), 6);
}

TEST_F(ClusterStart, ChiefThatComesAgainBeginsAnewAndSaysSo) {
  train({.master = kServer}, 3);
  testing::internal::CaptureStderr();
  train({.master = kServer}, 1);
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      HasSubstr("initialising 2 variables that have values on the parameter servers (global_step 3)"));
  EXPECT_EQ(step_on_server(), 1);
}

TEST_F(ClusterStart, ChiefThatAdoptsGoesOn) {
  train({.master = kServer}, 3);
  testing::internal::CaptureStderr();
  train({.master = kServer, .adopt = true}, 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("initialising")));
  EXPECT_EQ(step_on_server(), 4);
}

TEST_F(ClusterStart, ChiefRestoresItsCheckpointOverWhatIsThere) {
  train({.checkpoint_dir = folder_.path(), .save_checkpoint_steps = 2, .master = kServer}, 4);
  {
    Session other(model_.graph, kServer);
    other.run(model_.train);
  }
  EXPECT_EQ(step_on_server(), 5);
  train({.checkpoint_dir = folder_.path(), .save_checkpoint_steps = 2, .master = kServer}, 0);
  EXPECT_EQ(step_on_server(), 4);
}

TEST_F(ClusterStart, CheckpointOfAClusterIsRestoredLocally) {
  train({.checkpoint_dir = folder_.path(), .save_checkpoint_steps = 2, .master = kServer}, 4);
  MonitoredTrainingSession local(model_.graph, {.checkpoint_dir = folder_.path()});
  EXPECT_EQ(local.global_step(), 4);
}

TEST_F(ClusterStart, WorkerWaitsForTheChief) {
  testing::internal::CaptureStderr();
  std::thread chief([&] {
    Session session(model_.graph, kServer);
    while (SimulatedServer::sessions_made < 2) std::this_thread::yield();
    session.run(std::vector<Fetch>{model_.step.initializer(), model_.w.initializer()});
  });
  while (SimulatedServer::sessions_made < 1) std::this_thread::yield();
  MonitoredTrainingSession worker(
      model_.graph, {.master = kServer, .is_chief = false, .recovery_wait_secs = 0.05, .max_wait_secs = 60});
  chief.join();
  worker.run(model_.train);
  EXPECT_EQ(worker.global_step(), 1);
  testing::internal::GetCapturedStderr();
}

TEST_F(ClusterStart, WorkerGivesUpWhenItHasWaitedLongEnough) {
  testing::internal::CaptureStderr();
  EXPECT_THAT(
      [&] {
        MonitoredTrainingSession(
            model_.graph,
            {.master = kServer, .is_chief = false, .recovery_wait_secs = 0.02, .max_wait_secs = 0.1});
      },
      ThrowsMessage<DeadlineExceededError>(
          AllOf(HasSubstr("Session was not ready after waiting 0.1 secs."), HasSubstr("global_step"))));
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      HasSubstr("Waiting for model to be ready.  Ready_for_local_init_op:  Variables not initialized: "));
}

TEST_F(ClusterStart, WorkerWaitsUntilItsOwnReadySaysSo) {
  train({.master = kServer}, 1);
  testing::internal::CaptureStderr();
  int looks = 0;
  MonitoredTrainingSession worker(model_.graph,
                                  {.scaffold = {.ready =
                                                    [&](Session&) {
                                                      return ++looks < 3 ? std::vector<std::string>{"table"}
                                                                         : std::vector<std::string>();
                                                    }},
                                   .master = kServer,
                                   .is_chief = false,
                                   .recovery_wait_secs = 0.02,
                                   .max_wait_secs = 60});
  EXPECT_EQ(looks, 3);
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      HasSubstr("Waiting for model to be ready.  Ready_for_local_init_op:  None, ready: Variables not "
                "initialized: table"));
}

TEST_F(ClusterStart, WorkerNeedNotWaitForWhatItDoesNotWant) {
  testing::internal::CaptureStderr();
  bool local_is_ready = false;
  const Variable local(model_.s.named("local"), constant(model_.s, Tensor::scalar(1.0F)), {.local = true});
  {
    Session chief(model_.graph, kServer);
    chief.run(model_.step.initializer());
  }
  MonitoredTrainingSession worker(
      model_.graph, {.scaffold = {.ready_for_local_init = [](Session&) { return std::vector<std::string>(); },
                                  .ready =
                                      [&](Session& session) {
                                        local_is_ready =
                                            report_uninitialized_variables(session, {local}).empty();
                                        return std::vector<std::string>();
                                      }},
                     .master = kServer,
                     .is_chief = false,
                     .recovery_wait_secs = 0.02,
                     .max_wait_secs = 0.1});
  EXPECT_TRUE(local_is_ready);
  testing::internal::GetCapturedStderr();
}

TEST_F(ClusterStart, MakesTheSessionAgainWhenATaskIsAway) {
  SimulatedServer::refusals = {"no answer from ps 0"};
  testing::internal::CaptureStderr();
  train({.master = kServer}, 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("An error was raised while a session was being created."),
                    HasSubstr("no answer from ps 0")));
  EXPECT_EQ(step_on_server(), 1);
}

TEST_F(ClusterStart, RefusesAWorkerWithoutAMaster) {
  EXPECT_THROW(MonitoredTrainingSession(model_.graph, {.is_chief = false}), InvalidArgumentError);
}

}  // namespace
}  // namespace kolo
