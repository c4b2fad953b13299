// Monitored sessions with nothing but the hooks that they are given; and what else a run may be asked for.
#include <kolo/core/training/monitored_session.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include <kolo/core/base/error.h>
#include <kolo/core/training/hooks.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

// Fails before its second run, once.
struct Preempted : SessionRunHook {
  SessionRunArgs before_run(RunContext&) override {
    if (++runs == 2) throw AbortedError("a peer is gone");
    return {};
  }
  int runs = 0;
};

TEST(ChiefSessionCreator, RestoresAndSavesNothing) {
  TemporaryDirectory folder, other;
  CountingGraph model;
  { MonitoredTrainingSession(model.graph, {.checkpoint_dir = folder.path()}).run(model.train); }
  const auto before = folder.names();
  {
    MonitoredSession sess(model.graph, ChiefSessionCreator{.checkpoint_dir = folder.path()},
                          {std::make_shared<StopAtStepHook>(3)});
    EXPECT_EQ(sess.global_step(), 1);
    while (!sess.should_stop()) sess.run(model.train);
    EXPECT_EQ(sess.global_step(), 3);
  }
  EXPECT_EQ(folder.names(), before);
  { MonitoredSession(model.graph, ChiefSessionCreator{.checkpoint_dir = other.path()}).run(model.train); }
  EXPECT_THAT(other.names(), IsEmpty());
}

TEST(WorkerSessionCreator, IsForAWorkerOfACluster) {
  CountingGraph model;
  EXPECT_THAT(
      [&] { MonitoredSession(model.graph, WorkerSessionCreator{}); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("is_chief, adopt and sharded are of a session on")));
}

TEST(MonitoredSessionOfAChief, RecoversWhereASingularOneThrows) {
  CountingGraph model;
  {
    MonitoredSession sess(model.graph, ChiefSessionCreator{}, {std::make_shared<Preempted>()});
    for (int i = 0; i < 2; ++i) sess.run(model.train);
    EXPECT_EQ(sess.global_step(), 1);  // made again, and initialised, before the second
  }
  SingularMonitoredSession sess(model.graph, {}, {std::make_shared<Preempted>()});
  sess.run(model.train);
  EXPECT_THAT([&] { sess.run(model.train); }, ThrowsMessage<AbortedError>(HasSubstr("a peer is gone")));
}

TEST(MonitoredRun, TakesNamesAndStructures) {
  CountingGraph model;
  MonitoredTrainingSession sess(model.graph);
  EXPECT_EQ(sess.run("global_step/read:0").value<std::int64_t>(), 0);
  sess.run(model.train.node->name());
  EXPECT_EQ(sess.global_step(), 1);
  const auto [step, values] = sess.run(std::tuple{
      model.step.read(), std::map<std::string, Output>{{"w", model.w.read()}, {"n", model.count}}});
  EXPECT_EQ(values.at("n").value<std::int64_t>(), 2);
  EXPECT_THAT(values.at("w").span<float>(), ElementsAre(11, 21));
}

TEST(MonitoredRun, FillsInTheCallersMetadata) {
  CountingGraph model;
  MonitoredTrainingSession sess(model.graph);
  RunMetadata metadata;
  sess.run({model.train}, {}, {.trace_level = TraceLevel::full_trace}, &metadata);
  EXPECT_FALSE(metadata.step_stats.events.empty());
  EXPECT_FALSE(metadata.kernels.empty());
}

TEST(MonitoredRun, IsStoppedByTheCallersToken) {
  CountingGraph model;
  MonitoredTrainingSession sess(model.graph);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(sess.run({model.train}, {}, {.stop_token = stop.get_token()}), CancelledError);
}

// What a listener is told, in order.
struct Told : CheckpointSaverListener {
  void begin() override { calls.emplace_back("begin"); }
  void before_save(Session&, std::int64_t step) override {
    calls.push_back("before " + std::to_string(step));
  }
  bool after_save(Session&, std::int64_t step) override {
    calls.push_back("after " + std::to_string(step));
    return step == stops_at;
  }
  void end(Session&, std::int64_t step) override { calls.push_back("end " + std::to_string(step)); }
  std::int64_t stops_at = -1;
  std::vector<std::string> calls;
};

int runs_until_stop(CountingGraph& model, const TemporaryDirectory& folder,
                    const std::shared_ptr<Told>& told) {
  int runs = 0;
  MonitoredTrainingSession sess(
      model.graph, {.hooks = {std::make_shared<CheckpointSaverHook>(CheckpointSaverOptions{
                        .checkpoint_dir = folder.path(), .save_steps = 2, .listeners = {told}})}});
  for (; runs < 5 && !sess.should_stop(); ++runs) sess.run(model.train);
  return runs;
}

TEST(CheckpointSaverListener, IsToldBeforeAndAfterEachCheckpoint) {
  CountingGraph model;
  TemporaryDirectory folder;
  const auto told = std::make_shared<Told>();
  EXPECT_EQ(runs_until_stop(model, folder, told), 5);
  EXPECT_THAT(told->calls, ElementsAre("begin", "before 0", "after 0", "before 2", "after 2", "before 4",
                                       "after 4", "before 5", "after 5", "end 5"));
}

TEST(CheckpointSaverListener, EndsTheTrainingBehindACheckpoint) {
  CountingGraph model;
  TemporaryDirectory folder;
  const auto told = std::make_shared<Told>();
  told->stops_at = 2;
  EXPECT_EQ(runs_until_stop(model, folder, told), 2);
}

}  // namespace
}  // namespace kolo
