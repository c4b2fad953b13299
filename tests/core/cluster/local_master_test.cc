#include <kolo/core/cluster/master/local_master.h>

#include <gmock/gmock.h>

#include <future>

#include "local_master_fixture.h"

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

TEST_F(LocalMasterTest, OpensAWorkerSessionOnEveryTask) {
  const std::string session = open();
  EXPECT_THAT(session, SizeIs(32));
  for (const char* task : {kPs, kWorker0, kWorker1})
    EXPECT_EQ(peers_->at(task).count("create " + session), 1);
  EXPECT_THAT(list_devices(master(), session, {}), SizeIs(3));
}

// Row 15 of CLUSTER.md, with shorter times.
TEST_F(LocalMasterTest, WaitsForTasksThatAreNotUpAndSaysSo) {
  options_.find.warning = 50ms;
  peers_->at(kWorker1).go_down("connection refused");
  ::testing::internal::CaptureStderr();
  auto session = std::async(std::launch::async, [&] { return open(); });
  EXPECT_EQ(session.wait_for(300ms), std::future_status::timeout);
  peers_->at(kWorker1).come_up();
  EXPECT_EQ(session.wait_for(kTestPatience), std::future_status::ready);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("CreateSession still waiting for response from worker: /job:worker/replica:0/task:1 "
                        "(host:1: connection refused)"));
}

TEST_F(LocalMasterTest, NamesEveryMissingTaskWhenTheTimeIsOver) {
  peers_->at(kWorker1).go_down();
  ps().go_down();
  EXPECT_THAT([&] { create_session(master(), to_graph_def(graph_), {}, Clock::now() + 100ms); },
              ThrowsMessage<DeadlineExceededError>(AllOf(HasSubstr(kPs), HasSubstr(kWorker1))));
}

TEST_F(LocalMasterTest, StopRequestEndsTheWait) {
  ps().go_down();
  std::stop_source stop;
  auto session = std::async(std::launch::async, [&] {
    return create_session(master(), to_graph_def(graph_), {}, Deadline({}, stop.get_token()));
  });
  stop.request_stop();
  ASSERT_EQ(session.wait_for(kTestPatience), std::future_status::ready);
  EXPECT_THROW(session.get(), CancelledError);
}

TEST_F(LocalMasterTest, RefusesATaskOfAnotherClusterOrVersion) {
  ps().change_status([](TaskStatus& status) { status.cluster_fingerprint = 8; });
  EXPECT_THAT([&] { open(); }, ThrowsMessage<FailedPreconditionError>(
                                   HasSubstr("host:0 is /job:ps/replica:0/task:0 of another cluster")));
  ps().change_status([](TaskStatus& status) { status.cluster_fingerprint = 7, status.version = "0.9"; });
  EXPECT_THAT([&] { open(); },
              ThrowsMessage<FailedPreconditionError>(AllOf(HasSubstr("kolo 0.9"), HasSubstr("kolo 1"))));
}

// Row 14.
TEST_F(LocalMasterTest, AsksOnlyTasksThatTheFiltersPass) {
  peers_->at(kWorker1).go_down();
  const Scope s(graph_);
  add(s.named("far").device("/job:worker/task:1"), a_, a_);
  const std::string session = open({.device_filters = {"/job:ps", "/job:worker/task:0"}});
  EXPECT_THAT(list_devices(master(), session, {}), SizeIs(2));
  RunStepRequest request;
  request.session = session;
  request.names = {.feeds = {"a:0"}, .fetches = {"far:0"}, .targets = {}};
  request.feeds = {Tensor::scalar(1.0f)};
  EXPECT_THROW(master().run_step(request, {}), InvalidArgumentError);
  EXPECT_THAT([&] { open({.device_filters = {"/job:a/b"}}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Malformed device filter '/job:a/b'")));
}

TEST_F(LocalMasterTest, SeesItsOwnDevicesWhateverTheFilters) {
  const std::string session = open({.device_filters = {"/job:ps"}});
  EXPECT_THAT(list_devices(master(), session, {}), SizeIs(2));
}

TEST_F(LocalMasterTest, SessionIsAddedToByVersion) {
  const GraphDef old = to_graph_def(graph_);
  const auto session = create_session(master(), old, {}, {});
  add(Scope(graph_).named("d"), c_, c_);
  GraphDef more = to_graph_def(graph_);
  more.nodes.erase(more.nodes.begin(), more.nodes.begin() + static_cast<std::ptrdiff_t>(old.nodes.size()));
  EXPECT_THAT([&] { extend_session(master(), session.handle(), session.graph_version() + 1, more, {}); },
              ThrowsMessage<AbortedError>(HasSubstr("Current version is")));
  EXPECT_EQ(extend_session(master(), session.handle(), session.graph_version(), more, {}),
            session.graph_version() + 1);
  EXPECT_THROW(extend_session(master(), session.handle(), session.graph_version() + 1, more, {}),
               InvalidArgumentError);
}

TEST_F(LocalMasterTest, UnknownHandlesAreAborted) {
  EXPECT_THAT([&] { run("0123"); }, ThrowsMessage<AbortedError>(HasSubstr("Session 0123 is not found.")));
  EXPECT_THAT([&] { close_session(master(), "0123", {}); },
              ThrowsMessage<AbortedError>(
                  HasSubstr("Session 0123 is not found. Possibly, this master has restarted.")));
}

TEST_F(LocalMasterTest, RegistersPartsOnceAndNumbersSteps) {
  const std::string session = open();
  for (const float step : {1.0f, 2.0f, 3.0f}) {
    const StepResult result = run(session);
    ASSERT_THAT(result.fetches, SizeIs(1));
    EXPECT_EQ(result.fetches[0].value<float>(), step);
  }
  EXPECT_EQ(ps().count("register"), 1);
  EXPECT_EQ(own().count("register"), 1);
  const auto runs = ps().runs();
  ASSERT_THAT(runs, SizeIs(3));
  EXPECT_NE(runs[0].request_id, runs[1].request_id);
  EXPECT_THAT(runs[1].over, ElementsAre(1));
  EXPECT_TRUE(runs[0].feeds.empty());
  EXPECT_THAT(own().runs()[0].feeds, SizeIs(1));
}

TEST_F(LocalMasterTest, DeregistersPlansThatAreDropped) {
  // As many steps as there are shapes to feed: two more than are kept.
  Graph graph;
  const Scope s(graph);
  add(s.named("b").device("/job:ps/task:0"), placeholder(s.named("a"), DType::f32), one(s));
  RunStepRequest request;
  request.session = create_session(master(), to_graph_def(graph), {}, {}).handle();
  request.names = {.feeds = {"a:0"}, .fetches = {"b:0"}, .targets = {}};
  for (std::int64_t rows = 1; rows <= 66; ++rows) {
    request.feeds = {Tensor(DType::f32, {rows})};
    master().run_step(request, {});
  }
  EXPECT_EQ(ps().count("deregister"), 2);
}

TEST_F(LocalMasterTest, FirstErrorWinsWithItsTaskAndEndsTheOthers) {
  own().on_run = ScriptedWorker::never;
  ps().on_run = [](const RunPartRequest&, const ScriptedWorker::Done& done) {
    done(std::make_exception_ptr(InvalidArgumentError("bad k [node \"b\", Add]")), {});
  };
  const std::string session = open();
  EXPECT_THAT([&] { run(session); }, ThrowsMessage<InvalidArgumentError>(StartsWith(
                                         "From /job:ps/replica:0/task:0:\nbad k [node \"b\", Add]")));
  // The error may be there before the own part is to begin: then that does not.
  EXPECT_EQ(own().count("cancel"), own().runs().size());
}

TEST_F(LocalMasterTest, ConsequencesNeverWin) {
  std::promise<void> own_has_failed;
  own().on_run = [&](const RunPartRequest&, const ScriptedWorker::Done& done) {
    done(std::make_exception_ptr(ConsequenceError(Code::aborted, "Step 1 is over")), {});
    own_has_failed.set_value();
  };
  ps().on_run = [&](const RunPartRequest&, const ScriptedWorker::Done& done) {
    own_has_failed.get_future().wait_for(kTestPatience);
    done(std::make_exception_ptr(OutOfRangeError("the cause")), {});
  };
  EXPECT_THAT([&] { run(open()); }, ThrowsMessage<OutOfRangeError>(HasSubstr("the cause")));
}

TEST_F(LocalMasterTest, StopRequestCancelsTheStepOnAllTasks) {
  ps().on_run = own().on_run = ScriptedWorker::never;
  const std::string session = open();
  std::stop_source stop;
  auto step = std::async(std::launch::async, [&] { return run(session, {}, stop.get_token()); });
  ASSERT_TRUE(soon([&] { return own().runs().size() == 1; }));
  stop.request_stop();
  ASSERT_EQ(step.wait_for(kTestPatience), std::future_status::ready);
  EXPECT_THROW(step.get(), CancelledError);
  EXPECT_EQ(ps().count("cancel"), 1);
  EXPECT_EQ(own().count("cancel"), 1);
}

TEST_F(LocalMasterTest, DeadlineTellsWhatTheStepWaitedFor) {
  ps().on_run = own().on_run = ScriptedWorker::never;
  const std::string session = open();
  own().change_status([&](TaskStatus& status) {
    status.waits = {
        {.session = session, .step = 1, .node = "b/_recv", .op = "_NetRecv", .what = "", .nodes_left = 2}};
  });
  ps().change_status([&](TaskStatus& status) {
    status.waits = {{.session = session, .step = 1, .node = "b", .op = "Add", .what = "", .nodes_left = 3}};
  });
  EXPECT_THAT([&] { run(session, Clock::now() + 50ms); },
              ThrowsMessage<DeadlineExceededError>(AllOf(
                  HasSubstr("Timed out waiting for notification after "),
                  HasSubstr(" ms: waiting for /job:ps/replica:0/task:0 (3 nodes left, e.g. b (Add))"))));
  EXPECT_EQ(ps().count("cancel"), 1);
}

// It has nothing to wait for: the others wait for it.
TEST_F(LocalMasterTest, DeadlineNamesTheTaskThatComputes) {
  ps().on_run = own().on_run = ScriptedWorker::never;
  const std::string session = open();
  const auto receives = [&](TaskStatus& status) {
    status.waits = {
        {.session = session, .step = 1, .node = "b/_recv", .op = "_NetRecv", .what = "", .nodes_left = 2}};
  };
  own().change_status(receives);
  EXPECT_THAT([&] { run(session, Clock::now() + 50ms); },
              ThrowsMessage<DeadlineExceededError>(HasSubstr("waiting for /job:ps/replica:0/task:0")));
  own().change_status([&](TaskStatus& status) { status.waits.clear(); });
  ps().change_status([&](TaskStatus& status) {
    receives(status);
    status.waits[0].step = 2;
  });
  EXPECT_THAT([&] { run(session, Clock::now() + 50ms); },
              ThrowsMessage<DeadlineExceededError>(HasSubstr(std::string("waiting for ") + kWorker0)));
}

// It waits for a value as well, for which nobody else can be to blame as long as the others wait for it.
TEST_F(LocalMasterTest, DeadlineNamesTheTaskThatComputesAndReceives) {
  ps().on_run = own().on_run = ScriptedWorker::never;
  const std::string session = open();
  const auto receives = [&](bool computes) {
    return [&session, computes](TaskStatus& status) {
      status.waits = {{.session = session,
                       .step = status.waits.empty() ? 1 : 2,
                       .node = "b/_recv",
                       .op = "_NetRecv",
                       .what = "",
                       .nodes_left = 2,
                       .computes = computes}};
    };
  };
  own().change_status(receives(false));
  ps().change_status(receives(true));
  EXPECT_THAT([&] { run(session, Clock::now() + 50ms); },
              ThrowsMessage<DeadlineExceededError>(EndsWith("waiting for /job:ps/replica:0/task:0")));
  own().change_status(receives(true));
  ps().change_status(receives(false));
  EXPECT_THAT([&] { run(session, Clock::now() + 50ms); },
              ThrowsMessage<DeadlineExceededError>(EndsWith(std::string("waiting for ") + kWorker0)));
}

TEST_F(LocalMasterTest, LosesATaskDuringAStep) {
  ps().on_run = own().on_run = ScriptedWorker::never;
  const std::string session = open();
  auto step = std::async(std::launch::async, [&] { return run(session); });
  ASSERT_TRUE(soon([&] { return own().runs().size() == 1; }));
  ps().lose_watches();
  ASSERT_EQ(step.wait_for(kTestPatience), std::future_status::ready);
  EXPECT_THAT([&] { step.get(); }, ThrowsMessage<UnavailableError>(
                                       HasSubstr("From /job:ps/replica:0/task:0:\nno answer for 4 s")));
  EXPECT_THAT([&] { run(session); },
              ThrowsMessage<AbortedError>(
                  HasSubstr("Session " + session + " lost " + kPs + " in step 1; make a new session")));
}

// The task tells it, so that it is there.
TEST_F(LocalMasterTest, KernelWhoseErrorLooksLikeALossLeavesTheSessionWhole) {
  const std::string session = open();
  ps().on_run = [](const RunPartRequest& /*request*/, const ScriptedWorker::Done& done) {
    done(std::make_exception_ptr(UnavailableError("From {}:\nthe table is locked", kPs)), {});
  };
  EXPECT_THAT([&] { run(session); }, ThrowsMessage<UnavailableError>(HasSubstr("the table is locked")));
  ps().on_run = [](const RunPartRequest& /*request*/, const ScriptedWorker::Done& done) {
    done(std::make_exception_ptr(AbortedError("From {}:\nkey 7 is not found", kPs)), {});
  };
  EXPECT_THAT([&] { run(session); }, ThrowsMessage<AbortedError>(HasSubstr("key 7 is not found")));
  ps().on_run = nullptr;
  EXPECT_THAT(run(session).fetches, SizeIs(1));
}

TEST_F(LocalMasterTest, TaskThatIsAwayBetweenStepsLeavesTheSessionWhole) {
  const std::string session = open();
  run(session);
  ps().go_down();
  EXPECT_THAT([&] { run(session); },
              ThrowsMessage<UnavailableError>(HasSubstr("From /job:ps/replica:0/task:0:")));
  ps().come_up();
  EXPECT_THAT(run(session).fetches, SizeIs(1));
}

// A link that was down between steps: the task would take the master for gone.
TEST_F(LocalMasterTest, WatchesALostTaskAgainWithoutARun) {
  open();
  ps().lose_watches();
  EXPECT_TRUE(soon([&] { return ps().watches() == 1; }));
}

TEST_F(LocalMasterTest, DoesNotWatchALostTaskThatNoSessionHas) {
  const std::string session = open();
  close_session(master(), session, {});
  ps().lose_watches();
  std::this_thread::sleep_for(1500ms);
  EXPECT_EQ(ps().watches(), 0);
}

TEST_F(LocalMasterTest, ClosesASessionOnATaskThatWasAwayWhenItIsBack) {
  const std::string closed = open(), kept = open();
  ps().go_down();
  close_session(master(), closed, {});
  EXPECT_EQ(ps().count("delete"), 0);
  ps().come_up();
  EXPECT_TRUE(soon([&] { return ps().count("delete " + closed) == 1; }));
  EXPECT_THAT(run(kept).fetches, SizeIs(1));
}

// Row 41.
TEST_F(LocalMasterTest, TaskThatWasRestartedBreaksTheSession) {
  const std::string session = open();
  run(session);
  ps().restart(999);
  EXPECT_THAT([&] { run(session); },
              ThrowsMessage<AbortedError>(AllOf(
                  HasSubstr("RecvTensor expects a different device incarnation: 101 vs. 999. Your worker "
                            "job (\"/job:ps/replica:0/task:0\") was probably restarted."),
                  HasSubstr("Check your worker job"))));
  EXPECT_THAT([&] { run(session); }, ThrowsMessage<AbortedError>(HasSubstr("make a new session")));
  EXPECT_THAT(run(open()).fetches, SizeIs(1));
}

TEST_F(LocalMasterTest, TaskThatIsNotNeededMayBeAway) {
  const std::string session = open();
  peers_->at(kWorker1).go_down();
  EXPECT_THAT(run(session).fetches, SizeIs(1));
}

TEST_F(LocalMasterTest, VariablesAreReadAndWrittenWhereTheyAre) {
  Variable(Scope(graph_).named("w"), one(Scope(graph_)));
  const std::string session = open();
  const std::vector<std::string> names = {"v", "w"};
  EXPECT_THAT(are_initialized(master(), session, names, {}), ElementsAre(false, false));
  master().set_variables(session, names, [](std::size_t i) { return Tensor::scalar(static_cast<float>(i)); },
                         {});
  std::vector<float> values;
  master().get_variables(session, names,
                         [&](std::size_t, Tensor value) { values.push_back(value.value<float>()); }, {});
  EXPECT_THAT(values, ElementsAre(0, 1));
  EXPECT_EQ(ps().count("set"), 1);
  EXPECT_EQ(own().count("set"), 1);
  EXPECT_THROW(master().get_variables(session, {"a"}, [](std::size_t, Tensor) {}, {}), NotFoundError);
}

TEST_F(LocalMasterTest, TasksWriteTheirShardsWhenAllHaveFoundTheToken) {
  Variable(Scope(graph_).named("w"), one(Scope(graph_)));
  const std::string session = open();
  const std::vector<SavedVariable> variables{{.name = "w", .saved_as = "w", .shape = {}},
                                             {.name = "v", .saved_as = "v", .shape = {}}};
  const auto shards = write_shards(master(), session, {.prefix = "/p", .token = "t"}, variables, {});
  ASSERT_THAT(shards, SizeIs(2));
  EXPECT_THAT(shards[0].variables, ElementsAre(1u)) << "/job:ps comes before /job:worker";
  EXPECT_THAT(shards[1].variables, ElementsAre(0u));
  EXPECT_EQ(ps().count("write shard 0 of 2"), 1);
  EXPECT_EQ(own().count("write shard 1 of 2"), 1);

  ps().on_write_shard = [](const ShardPlace&, const std::vector<SavedVariable>& asked) {
    if (asked.empty()) throw FailedPreconditionError("checkpoint_dir /c is not the same folder on it");
  };
  EXPECT_THAT([&] { write_shards(master(), session, {.prefix = "/p", .token = "t"}, variables, {}); },
              ThrowsMessage<FailedPreconditionError>(
                  AllOf(HasSubstr("From /job:ps/replica:0/task:0:"), HasSubstr("is not the same folder"))));
  EXPECT_EQ(own().count("write shard"), 1) << "nobody writes into a folder that is not everybody's";
}

TEST_F(LocalMasterTest, CallablesRunByTheirNumber) {
  const std::string session = open();
  const auto callable =
      make_callable(master(), session, {.feeds = {"a:0"}, .fetches = {"c:0"}, .targets = {}}, {});
  RunStepRequest request;
  request.session = session;
  request.callable = callable;
  request.feeds = {Tensor::scalar(1.0f)};
  EXPECT_THAT(master().run_step(request, {}).fetches, SizeIs(1));
  release_callable(master(), session, callable, {});
  EXPECT_THROW(master().run_step(request, {}), NotFoundError);
}

TEST_F(LocalMasterTest, PlacementLinesNameWhatWasPlacedAnew) {
  const std::string session = open({.log_device_placement = true});
  EXPECT_THAT(run(session).placement_lines,
              ::testing::Contains("b: (Add): /job:ps/replica:0/task:0/device:CPU:0"));
  EXPECT_THAT(run(session).placement_lines, SizeIs(0));
}

TEST_F(LocalMasterTest, ShutDownMasterRefusesCalls) {
  const std::string session = open();
  master().shutdown();
  EXPECT_THAT([&] { run(session); },
              ThrowsMessage<UnavailableError>(HasSubstr(std::string(kWorker0) + " is shutting down")));
}

TEST_F(LocalMasterTest, KeepsNoMoreSessionsThanItMay) {
  options_.sessions = 2;
  open(), open();
  EXPECT_THROW(open(), ResourceExhaustedError);
}

}  // namespace
}  // namespace kolo::detail
