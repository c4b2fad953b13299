#include <kolo/core/base/exit_code.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/global_step.h>
#include <kolo/core/training/monitored_session.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <functional>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/stop_signal.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"
#include "tests/recorded_calls.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;

// Writes down each call as "<name> <call>" and does what the test says.
struct RecordingHook : SessionRunHook {
  RecordingHook(std::string name, std::vector<std::string>& calls) : name(std::move(name)), calls(calls) {}

  void begin(Graph&) override { calls.push_back(name + " begin"); }
  void after_create_session(Session&) override { calls.push_back(name + " after_create_session"); }
  SessionRunArgs before_run(RunContext& context) override {
    calls.push_back(name + " before_run");
    if (on_before_run) on_before_run(context);
    return wishes;
  }
  void after_run(RunContext& context, const RunValues& given) override {
    calls.push_back(name + " after_run");
    values = given.results;
    traced_events = given.trace == nullptr ? 0 : given.trace->events.size();
    if (on_after_run) on_after_run(context);
  }
  void end(Session&) override { calls.push_back(name + " end"); }

  std::string name;
  std::vector<std::string>& calls;
  SessionRunArgs wishes;
  std::vector<Tensor> values;
  std::size_t traced_events = 0;
  std::function<void(RunContext&)> on_before_run, on_after_run;
};

class MonitoredSession : public testing::Test {
 protected:
  MonitoredSession() { set_log_level(LogLevel::warning); }
  ~MonitoredSession() override { clear_stop_signal(); }

  std::shared_ptr<RecordingHook> hook(const std::string& name) {
    return std::make_shared<RecordingHook>(name, calls_);
  }
  // Steps of a session over folder_ until `last_step`.
  void train_to(std::int64_t last_step, std::optional<std::int64_t> save_steps = {}) {
    MonitoredTrainingSession sess(model_.graph, {.checkpoint_dir = folder_.path(),
                                                 .save_checkpoint_steps = save_steps,
                                                 .hooks = {std::make_shared<StopAtStepHook>(last_step)}});
    while (!sess.should_stop()) sess.run(model_.train);
    sess.close();
  }
  std::vector<std::string> checkpoints() const { return list_checkpoints(folder_.path()); }

  TemporaryDirectory folder_;
  CountingGraph model_;
  std::vector<std::string> calls_;
};

// Row 58 of the worked examples.
TEST_F(MonitoredSession, GoesOnFromTheStepAtWhichItEnded) {
  {
    MonitoredTrainingSession sess(model_.graph, {.checkpoint_dir = folder_.path()});
    sess.run(model_.train);
    sess.run(model_.train);
  }
  MonitoredTrainingSession sess(model_.graph, {.checkpoint_dir = folder_.path()});
  EXPECT_EQ(sess.global_step(), 2);
  EXPECT_EQ(sess.run(model_.step.read()).value<std::int64_t>(), 2);
  EXPECT_THAT(sess.run(model_.w.read()).span<float>(), ElementsAre(12, 22));
}

// Row 59.
TEST_F(MonitoredSession, StopsAtTheLastStep) {
  MonitoredTrainingSession sess(model_.graph, {.hooks = {std::make_shared<StopAtStepHook>(3)}});
  std::vector<std::int64_t> results;
  while (!sess.should_stop()) results.push_back(sess.run(model_.count).value<std::int64_t>());
  EXPECT_THAT(results, ElementsAre(1, 2, 3));
  EXPECT_FALSE(sess.stopped_on_request());
}

TEST_F(MonitoredSession, RunsTargetsBesideWhatItFetches) {
  const Output step = require_global_step(model_.graph, "test").read();
  MonitoredTrainingSession sess(model_.graph);
  const auto results = sess.run({Fetch(step)}, {}, Targets{model_.train});
  EXPECT_EQ(results.size(), 1u);
  EXPECT_EQ(sess.global_step(), 1);
}

TEST_F(MonitoredSession, CountsNumStepsFromTheRestoredStep) {
  train_to(4);
  MonitoredTrainingSession sess(
      model_.graph, {.checkpoint_dir = folder_.path(),
                     .hooks = {std::make_shared<StopAtStepHook>(StopAtStepOptions{.num_steps = 2})}});
  while (!sess.should_stop()) sess.run(model_.train);
  EXPECT_EQ(sess.global_step(), 6);
}

// Row 60.
TEST_F(MonitoredSession, RepeatsARunThatWasAborted) {
  const auto injector = hook("h");
  int runs = 0;
  injector->on_before_run = [&](RunContext&) {
    if (++runs == 3) throw AbortedError("injected");
  };
  MonitoredTrainingSession sess(
      model_.graph, {.checkpoint_dir = folder_.path(), .save_checkpoint_steps = 1, .hooks = {injector}});
  Session& session = sess.session();
  testing::internal::CaptureStderr();
  std::vector<std::int64_t> results;
  for (int i = 0; i < 3; ++i) results.push_back(sess.run(model_.count).value<std::int64_t>());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("injected"));
  EXPECT_THAT(results, ElementsAre(1, 2, 3));
  EXPECT_EQ(std::count(calls_.begin(), calls_.end(), "h begin"), 1);
  EXPECT_EQ(std::count(calls_.begin(), calls_.end(), "h after_create_session"), 2);
  EXPECT_EQ(&session, &sess.session());
  EXPECT_EQ(session.run(Output(find_global_step(model_.graph))).value<std::int64_t>(), 3);
}

// Row 61.
TEST_F(MonitoredSession, SavesAtCreationAndThenEverySecondStep) {
  MonitoredTrainingSession sess(model_.graph, {.checkpoint_dir = folder_.path(), .save_checkpoint_steps = 2});
  EXPECT_THAT(checkpoints(), ElementsAre("model.ckpt-0"));
  sess.run(model_.train);
  EXPECT_THAT(checkpoints(), ElementsAre("model.ckpt-0"));
  sess.run(model_.train);
  EXPECT_THAT(checkpoints(), ElementsAre("model.ckpt-2", "model.ckpt-0"));
}

TEST_F(MonitoredSession, SavesTheLastStepAtTheEnd) {
  train_to(5, 2);
  EXPECT_THAT(checkpoints(), ElementsAre("model.ckpt-5", "model.ckpt-4", "model.ckpt-2", "model.ckpt-0"));
  EXPECT_THAT(folder_.names(), Not(Contains(testing::EndsWith(".tmp"))));
}

TEST_F(MonitoredSession, SavesEqualBytesInOneGoAndAfterARestart) {
  train_to(4);
  const std::string path = folder_ / "model.ckpt-4.safetensors";
  const std::string resumed_from_nothing = bytes_of_file(path),
                    index = bytes_of_file(folder_ / "model.ckpt-4.index.json");
  for (const auto& name : folder_.names()) std::filesystem::remove(folder_ / name);
  train_to(2);
  train_to(4);
  EXPECT_EQ(bytes_of_file(path), resumed_from_nothing);
  EXPECT_EQ(bytes_of_file(folder_ / "model.ckpt-4.index.json"), index);
}

TEST_F(MonitoredSession, SavesNothingWhereSavingIsTurnedOff) {
  MonitoredTrainingSession(model_.graph, {.checkpoint_dir = folder_.path(), .save_checkpoint_secs = 0})
      .close();
  MonitoredTrainingSession(model_.graph, {.checkpoint_dir = folder_.path(), .save_checkpoint_steps = 0})
      .close();
  EXPECT_THAT(folder_.names(), IsEmpty());
}

TEST_F(MonitoredSession, SavesNothingWithBothSecondsAndStepsZero) {
  MonitoredTrainingSession(
      model_.graph, {.checkpoint_dir = folder_.path(), .save_checkpoint_secs = 0, .save_checkpoint_steps = 0})
      .close();
  EXPECT_THAT(folder_.names(), IsEmpty());
}

TEST_F(MonitoredSession, DoesNotTakeBothSecondsAndSteps) {
  EXPECT_THAT(
      [&] {
        MonitoredTrainingSession(model_.graph, {.save_checkpoint_secs = 1, .save_checkpoint_steps = 1});
      },
      ThrowsMessage<InvalidArgumentError>("Can not provide both every_secs and every_steps."));
  EXPECT_FALSE(model_.graph.is_finalized());
}

TEST_F(MonitoredSession, SavesAndRestoresStateOutsideTheGraph) {
  std::string position = "[0,1]";
  const SavedState samples{.name = "samples",
                           .save = [&] { return position; },
                           .restore = [&](const std::string& saved) { position = saved; }};
  const auto open = [&] {
    return std::make_unique<MonitoredTrainingSession>(
        model_.graph,
        MonitoredTrainingSessionOptions{.checkpoint_dir = folder_.path(), .saved_state = {samples}});
  };
  auto sess = open();
  EXPECT_EQ(position, "[0,1]");
  sess->run(model_.train);
  position = "[3, 17]";
  sess.reset();
  position = "[0,0]";
  open()->close();
  EXPECT_EQ(position, "[3,17]");
}

TEST_F(MonitoredSession, InitialisesLocalVariablesAfterARestore) {
  train_to(1);
  const Variable local(model_.s.named("seen"), zeros(model_.s, DType::f32, {}),
                       {.trainable = false, .local = true});
  MonitoredTrainingSession sess(model_.graph, {.checkpoint_dir = folder_.path()});
  EXPECT_EQ(sess.run(local.read()).value<float>(), 0.0f);
}

TEST_F(MonitoredSession, UsesTheNewestIntactCheckpoint) {
  train_to(4, 2);
  std::filesystem::resize_file(folder_ / "model.ckpt-4.safetensors", 20);
  testing::internal::CaptureStderr();
  MonitoredTrainingSession sess(model_.graph, {.checkpoint_dir = folder_.path()});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("ignoring model.ckpt-4: model.ckpt-4.safetensors: "));
  EXPECT_EQ(sess.global_step(), 2);
}

TEST_F(MonitoredSession, NeverStartsFromZeroBesideDamagedCheckpoints) {
  train_to(1);
  for (const int step : {0, 1})
    std::filesystem::remove(folder_ / fmt::format("model.ckpt-{}.index.json", step));
  testing::internal::CaptureStderr();
  EXPECT_THAT([&] { MonitoredTrainingSession(model_.graph, {.checkpoint_dir = folder_.path()}); },
              ThrowsMessage<DataLossError>(HasSubstr("none of the 2 checkpoints")));
  testing::internal::GetCapturedStderr();
  EXPECT_FALSE(model_.graph.is_finalized());
}

TEST_F(MonitoredSession, RebuildsADamagedStateFile) {
  train_to(2, 1);
  write_bytes(folder_ / "checkpoint", "???");
  testing::internal::CaptureStderr();
  MonitoredTrainingSession(model_.graph, {.checkpoint_dir = folder_.path()}).close();
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(bytes_of_file(folder_ / "checkpoint"),
            "model_checkpoint_path: \"model.ckpt-2\"\nall_model_checkpoint_paths: \"model.ckpt-0\"\n"
            "all_model_checkpoint_paths: \"model.ckpt-1\"\nall_model_checkpoint_paths: \"model.ckpt-2\"\n");
}

TEST_F(MonitoredSession, RemovesWhatAKilledRunWasWriting) {
  write_bytes(folder_ / "model.ckpt-7.safetensors.tmp", "half");
  MonitoredTrainingSession(model_.graph, {.checkpoint_dir = folder_.path()}).close();
  EXPECT_THAT(folder_.names(),
              ElementsAre("checkpoint", "model.ckpt-0.index.json", "model.ckpt-0.safetensors"));
}

TEST_F(MonitoredSession, NamesACheckpointFolderThatIsAFileOrCannotBeMade) {
  write_bytes(folder_ / "file", "");
  EXPECT_THAT(
      [&] { MonitoredTrainingSession(model_.graph, {.checkpoint_dir = folder_ / "file"}); },
      ThrowsMessage<FailedPreconditionError>(AllOf(HasSubstr(folder_ / "file"), HasSubstr("is a file"))));
  EXPECT_THAT([&] { MonitoredTrainingSession(model_.graph, {.checkpoint_dir = "/proc/none"}); },
              ThrowsMessage<Error>(HasSubstr("cannot make the checkpoint folder /proc/none")));
}

TEST_F(MonitoredSession, CallsHooksInOrderAndTheChiefsFirst) {
  {
    MonitoredTrainingSession sess(model_.graph,
                                  {.chief_only_hooks = {hook("chief")}, .hooks = {hook("a"), hook("b")}});
    sess.run(model_.train);
  }
  EXPECT_THAT(calls_, ElementsAre("chief begin", "a begin", "b begin", "chief after_create_session",
                                  "a after_create_session", "b after_create_session", "chief before_run",
                                  "a before_run", "b before_run", "chief after_run", "a after_run",
                                  "b after_run", "chief end", "a end", "b end"));
}

TEST_F(MonitoredSession, GivesEachHookItsOwnResultsAndTheCallerOnlyTheirs) {
  const auto a = hook("a"), b = hook("b"), c = hook("c");
  a->wishes.fetches = {model_.step.read(), model_.w.read()};
  c->wishes.fetches = {model_.w.read()};
  MonitoredTrainingSession sess(model_.graph, {.hooks = {a, b, c}});
  EXPECT_EQ(sess.run(std::vector<Fetch>{model_.step.read()}).size(), 1u);
  ASSERT_EQ(a->values.size(), 2u);
  EXPECT_EQ(a->values[0].dtype(), DType::i64);
  EXPECT_THAT(a->values[1].span<float>(), ElementsAre(10, 20));
  EXPECT_THAT(b->values, IsEmpty());
  EXPECT_EQ(c->values.size(), 1u);
}

TEST_F(MonitoredSession, FeedsWhatHooksWishAndRefusesASecondFeedOfOneTensor) {
  const Output x = placeholder(model_.s, DType::f32, {}), y = identity(model_.s, x);
  const Feeds feeds = {{x, Tensor::scalar(5.0f)}};
  const auto a = hook("a"), b = hook("b");
  a->wishes.feeds = feeds;
  MonitoredTrainingSession sess(model_.graph, {.hooks = {a, b}});
  EXPECT_EQ(sess.run(y).value<float>(), 5.0f);
  EXPECT_THAT([&] { sess.run(y, feeds); },
              ThrowsMessage<FailedPreconditionError>("Same tensor is fed by a SessionRunHook and user."));
  b->wishes.feeds = feeds;
  EXPECT_THAT([&] { sess.run(y); },
              ThrowsMessage<FailedPreconditionError>("Same tensor is fed by two hooks."));
}

TEST_F(MonitoredSession, RecordsAStepForAHookThatAsks) {
  const auto a = hook("a");
  MonitoredTrainingSession sess(model_.graph, {.hooks = {a}});
  sess.run(model_.train);
  EXPECT_EQ(a->traced_events, 0u);
  a->wishes.options.trace_level = TraceLevel::software_trace;
  sess.run(model_.train);
  EXPECT_GT(a->traced_events, 0u);
}

// A look of its own would wait for a GPU, or for another task, once more.
TEST_F(MonitoredSession, LearnsTheStepFromTheRunThatCountsIt) {
  detail::StepOfRun step(model_.graph, model_.step);
  EXPECT_TRUE(step.behind({Fetch(model_.train)}));
  EXPECT_FALSE(step.behind({Fetch(model_.w.read())}));
  const MonitoredTrainingSession sess(model_.graph);
  EXPECT_NE(model_.graph.find_node("global_step_after_run_1"), nullptr) << "the session's";
}

TEST_F(MonitoredSession, StopsAfterTheRunInWhichAHookAsks) {
  const auto a = hook("a");
  a->on_after_run = [](RunContext& context) { context.request_stop(); };
  MonitoredTrainingSession sess(model_.graph, {.hooks = {a, hook("b")}});
  EXPECT_FALSE(sess.should_stop());
  EXPECT_EQ(sess.run(model_.count).value<std::int64_t>(), 1);
  EXPECT_EQ(calls_.back(), "b after_run");
  EXPECT_TRUE(sess.should_stop());
  EXPECT_THAT([&] { sess.run(model_.count); },
              ThrowsMessage<FailedPreconditionError>("Run called even after should_stop requested."));
}

TEST_F(MonitoredSession, StopsAndSavesOnASignal) {
  MonitoredTrainingSession sess(model_.graph, {.checkpoint_dir = folder_.path()});
  sess.run(model_.train);
  raise(SIGUSR1);
  EXPECT_NO_THROW(sess.run(model_.train));
  EXPECT_TRUE(sess.should_stop());
  EXPECT_TRUE(sess.stopped_on_request());
  sess.close();
  EXPECT_EQ(checkpoints().front(), "model.ckpt-2");
}

TEST_F(MonitoredSession, TellsAStopOnRequestByTheExitCode) {
  setenv("KOLO_STOPPED_EXIT_CODE", "75", 1);
  {
    MonitoredTrainingSession sess(model_.graph);
    raise(SIGUSR1);
    EXPECT_TRUE(sess.should_stop());
    sess.close();
  }
  EXPECT_EQ(exit_code(), 75);
  setenv("KOLO_STOPPED_EXIT_CODE", "126", 1);
  EXPECT_THROW(exit_code(), InvalidArgumentError);
  unsetenv("KOLO_STOPPED_EXIT_CODE");
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(MonitoredSession, EndsWithExitCodeZeroWhereAHookStopped) {
  setenv("KOLO_STOPPED_EXIT_CODE", "75", 1);
  {
    MonitoredTrainingSession sess(model_.graph, {.hooks = {std::make_shared<StopAtStepHook>(1)}});
    while (!sess.should_stop()) sess.run(model_.train);
    sess.close();
  }
  EXPECT_EQ(exit_code(), 0);
  unsetenv("KOLO_STOPPED_EXIT_CODE");
}

TEST_F(MonitoredSession, StopsOnASignalBetweenTwoRuns) {
  MonitoredTrainingSession sess(model_.graph);
  raise(SIGTERM);
  EXPECT_TRUE(sess.should_stop());
  EXPECT_TRUE(sess.stopped_on_request());
}

// Several runs make the step that StopAtStepHook waits for.
TEST_F(MonitoredSession, StopsOnASignalInARunThatDoesNotCountTheLastStep) {
  const auto a = hook("a");
  a->on_before_run = [](RunContext& context) { context.announce_last_step(); };
  MonitoredTrainingSession sess(model_.graph, {.hooks = {a}});
  raise(SIGTERM);
  sess.run(model_.w.read());
  EXPECT_TRUE(sess.should_stop());
  EXPECT_TRUE(sess.stopped_on_request());
}

TEST_F(MonitoredSession, EndsQuietlyAtTheEndOfTheData) {
  const auto a = hook("a");
  a->on_before_run = [](RunContext&) { throw OutOfRangeError("no more data"); };
  MonitoredTrainingSession sess(model_.graph, {.checkpoint_dir = folder_.path(), .hooks = {a}});
  EXPECT_FALSE(sess.run(model_.w.read()));
  EXPECT_TRUE(sess.should_stop());
  EXPECT_FALSE(sess.stopped_on_request());
  sess.close();
  EXPECT_EQ(calls_.back(), "a end");
}

TEST_F(MonitoredSession, NeitherSavesNorCallsEndWhenAnExceptionLeavesTheLoop) {
  const auto failing_training = [&] {
    MonitoredTrainingSession sess(model_.graph, {.checkpoint_dir = folder_.path(), .hooks = {hook("a")}});
    sess.run(model_.train);
    throw InvalidArgumentError("of the user's own");
  };
  EXPECT_THROW(failing_training(), InvalidArgumentError);
  EXPECT_THAT(checkpoints(), ElementsAre("model.ckpt-0"));
  EXPECT_THAT(calls_, Not(Contains("a end")));
  EXPECT_FALSE(model_.graph.is_finalized());
}

TEST_F(MonitoredSession, PassesErrorsOfAStepOn) {
  const Output x = placeholder(model_.s.named("x"), DType::f32, {});
  MonitoredTrainingSession sess(model_.graph);
  EXPECT_THAT([&] { sess.run(x); }, ThrowsMessage<InvalidArgumentError>(
                                        HasSubstr("You must feed a value for placeholder tensor 'x'")));
}

TEST_F(MonitoredSession, FinalizesTheGraphUntilItCloses) {
  MonitoredTrainingSession sess(model_.graph);
  EXPECT_TRUE(model_.graph.is_finalized());
  sess.close();
  EXPECT_FALSE(model_.graph.is_finalized());
  EXPECT_TRUE(sess.should_stop());
  EXPECT_THAT([&] { sess.close(); }, ThrowsMessage<FailedPreconditionError>("Session is already closed."));
}

TEST_F(MonitoredSession, LeavesAGraphFinalizedThatWasBefore) {
  model_.graph.finalize();
  MonitoredTrainingSession(model_.graph).close();
  EXPECT_TRUE(model_.graph.is_finalized());
}

TEST_F(MonitoredSession, WantsAGlobalStepToSave) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), zeros(s, DType::f32, {}));
  EXPECT_THAT(
      [&] { MonitoredTrainingSession(graph, {.checkpoint_dir = folder_.path()}); },
      ThrowsMessage<FailedPreconditionError>("Global step should be created to use CheckpointSaverHook."));
}

TEST_F(MonitoredSession, ThrowsFromCloseWhatKeepsItFromSaving) {
  MonitoredTrainingSession sess(model_.graph, {.checkpoint_dir = folder_.path()});
  sess.run(model_.train);
  {
    RecordedCalls calls(folder_.path());
    calls.fail("write model.ckpt-1.index.json.tmp", ENOSPC);
    EXPECT_THAT([&] { sess.close(); },
                ThrowsMessage<ResourceExhaustedError>(HasSubstr("No space left on device")));
  }
  EXPECT_THAT(checkpoints(), ElementsAre("model.ckpt-0"));
  EXPECT_THAT(folder_.names(), Not(Contains(StartsWith("model.ckpt-1"))));
}

}  // namespace
}  // namespace kolo
