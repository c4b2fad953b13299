#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/hooks.h>
#include <kolo/core/training/monitored_session.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <thread>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/stop_time.h>
#include <kolo/core/ops/math.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckpointSaverHookTest : public testing::Test {
 protected:
  CheckpointSaverHookTest() { set_log_level(LogLevel::warning); }

  MonitoredTrainingSessionOptions saving(std::int64_t steps = 1) const {
    return {.checkpoint_dir = folder_.path(), .save_checkpoint_steps = steps};
  }
  // The saver's hook is the user's own; the session restores.
  MonitoredTrainingSessionOptions own_hook(const std::string& basename) const {
    return {.checkpoint_dir = folder_.path(),
            .save_checkpoint_steps = 0,
            .hooks = {std::make_shared<CheckpointSaverHook>(CheckpointSaverOptions{
                .checkpoint_dir = folder_.path(), .save_steps = 1, .checkpoint_basename = basename})}};
  }
  void run(const MonitoredTrainingSessionOptions& options, int steps) {
    MonitoredTrainingSession sess(model_.graph, options);
    for (int i = 0; i < steps; ++i) sess.run(model_.train);
    sess.close();
  }
  std::vector<std::string> checkpoints() const { return list_checkpoints(folder_.path()); }

  TemporaryDirectory folder_;
  CountingGraph model_;
};

TEST_F(CheckpointSaverHookTest, TakesASaverOrAScaffold) {
  const auto saver = std::make_shared<Saver>(std::vector<Variable>{model_.w, model_.step},
                                             SaverOptions{.pad_step_number = true});
  EXPECT_THAT(
      [&] {
        CheckpointSaverHook(
            {.checkpoint_dir = folder_.path(), .save_steps = 1, .saver = saver, .scaffold = Scaffold()});
      },
      testing::ThrowsMessage<InvalidArgumentError>("You cannot provide both saver and scaffold."));
  MonitoredTrainingSession sess(
      model_.graph,
      {.hooks = {std::make_shared<CheckpointSaverHook>(CheckpointSaverOptions{
           .checkpoint_dir = folder_.path(), .save_steps = 1, .scaffold = Scaffold{.saver = saver}})}});
  EXPECT_THAT(folder_.names(), testing::Contains("model.ckpt-00000000.index.json"));
}

// For who asks the job to stop before its time ends.
TEST_F(CheckpointSaverHookTest, TellsHowLongASaveTook) {
  auto options = saving();
  options.saved_state = {
      {.name = "slow",
       .save = [] { return std::this_thread::sleep_for(std::chrono::milliseconds(30)), "1"; },
       .restore = [](const std::string&) {}}};
  detail::note_save({});
  run(options, 1);
  EXPECT_GE(detail::last_save().count(), 30);
  setenv("KOLO_LAUNCHER", "kolorun", 1);
  setenv("SLURM_JOB_ID", "7", 1);
  testing::internal::CaptureStderr();
  run(options, 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::ContainsRegex("\x01kolo save-took [0-9]+\n"));
  unsetenv("KOLO_LAUNCHER");
  unsetenv("SLURM_JOB_ID");
}

// A file that is replaced is another one: the link to the old one tells.
TEST_F(CheckpointSaverHookTest, DoesNotWriteTheRestoredStepAgain) {
  run(saving(), 2);
  const TemporaryDirectory links;
  for (const std::string ending : {".safetensors", ".index.json"})
    std::filesystem::create_hard_link(folder_ / ("model.ckpt-2" + ending), links / ("link" + ending));
  run(saving(), 1);
  for (const std::string ending : {".safetensors", ".index.json"})
    EXPECT_TRUE(std::filesystem::equivalent(folder_ / ("model.ckpt-2" + ending), links / ("link" + ending)))
        << ending;
  EXPECT_EQ(checkpoints().front(), "model.ckpt-3");
}

TEST_F(CheckpointSaverHookTest, CountsStepsFromTheRestoredOne) {
  run(saving(), 1);
  MonitoredTrainingSession sess(model_.graph, saving(2));
  sess.run(model_.train);
  EXPECT_EQ(checkpoints().front(), "model.ckpt-1");
  sess.run(model_.train);
  EXPECT_EQ(checkpoints().front(), "model.ckpt-3");
}

TEST_F(CheckpointSaverHookTest, SavesWhatWasRestoredFromAnotherFolder) {
  run(saving(), 2);
  const TemporaryDirectory other;
  MonitoredTrainingSession sess(
      model_.graph, {.checkpoint_dir = folder_.path(),
                     .save_checkpoint_steps = 0,
                     .hooks = {std::make_shared<CheckpointSaverHook>(
                         CheckpointSaverOptions{.checkpoint_dir = other.path(), .save_steps = 10})}});
  EXPECT_THAT(list_checkpoints(other.path()), ElementsAre("model.ckpt-2"));
}

TEST_F(CheckpointSaverHookTest, IsRestoredFromUnderAnyBasename) {
  run(own_hook("mine"), 3);
  EXPECT_THAT(checkpoints(), ElementsAre("mine-3", "mine-2", "mine-1", "mine-0"));
  MonitoredTrainingSession sess(model_.graph, own_hook("mine"));
  EXPECT_EQ(sess.global_step(), 3);
}

TEST_F(CheckpointSaverHookTest, GoesOnRemovingOldCheckpointsAfterARestart) {
  run(own_hook("mine"), 4);
  run(own_hook("mine"), 2);
  EXPECT_THAT(checkpoints(), ElementsAre("mine-6", "mine-5", "mine-4", "mine-3", "mine-2"));
}

TEST_F(CheckpointSaverHookTest, IgnoresFilesOfOtherProgramsThatEndInNumbers) {
  write_bytes(folder_ / "model-00001-of-00002.safetensors", "another program's");
  EXPECT_THAT(checkpoints(), IsEmpty());
  run(saving(), 1);
  EXPECT_EQ(checkpoints().front(), "model.ckpt-1");
}

TEST_F(CheckpointSaverHookTest, TellsTheLatestCheckpointOfTheStateFile) {
  EXPECT_FALSE(latest_checkpoint(folder_.path()));
  run(own_hook("mine"), 1);
  EXPECT_EQ(latest_checkpoint(folder_.path()), folder_ / "mine-1");
  remove_checkpoint(folder_ / "mine-1");
  testing::internal::CaptureStderr();
  EXPECT_FALSE(latest_checkpoint(folder_.path()));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("Couldn't match files for checkpoint " + (folder_ / "mine-1")));
}

// Two runs for each step, as with backward_passes_per_step = 2: the first of them changes "sums" alone. A
// save that falls due between the two waits for the update.
TEST_F(CheckpointSaverHookTest, SavesNothingBetweenTwoPassesOfAStep) {
  const Variable sums(model_.s.named("sums"), zeros(model_.s, DType::f32, {}), {.trainable = false});
  const Output first_pass = assign_add(model_.s, sums, constant(model_.s, 1.0f));
  const Output last_pass =
      assign_add(model_.s.control_dependencies({Operation(model_.train)}), sums, constant(model_.s, -1.0f));
  MonitoredTrainingSession sess(model_.graph,
                                {.checkpoint_dir = folder_.path(), .save_checkpoint_secs = 0.5});
  sess.run(Operation(first_pass));
  sess.run(Operation(last_pass));
  std::this_thread::sleep_for(std::chrono::milliseconds(600));  // the timer's clock is the real one
  sess.run(Operation(first_pass));
  sess.run(Operation(last_pass));
  EXPECT_EQ(checkpoints().front(), "model.ckpt-2");
  for (const std::string& name : checkpoints())
    EXPECT_EQ(SafetensorsReader(folder_ / (name + ".safetensors")).read("sums").value<float>(), 0) << name;
}

class DivergedTraining : public CheckpointSaverHookTest {
 protected:
  // w grows by x in a step.
  Output x_ = placeholder(model_.s, DType::f32, {2});
  Output step_ = assign_add(model_.s.control_dependencies({Operation(model_.count)}), model_.w, x_);
  static Feeds feeds(const Output& x, float value) { return {{x, Tensor::of<float>({2}, {1, value})}}; }
};

TEST_F(DivergedTraining, LeavesTheGoodCheckpointsAsTheyAre) {
  testing::internal::CaptureStderr();
  {
    MonitoredTrainingSessionOptions options = saving();
    options.max_to_keep = 1;
    MonitoredTrainingSession sess(model_.graph, options);
    sess.run(Operation(step_), feeds(x_, 1));
    for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")})
      sess.run(Operation(step_), feeds(x_, bad));
    sess.close();
  }
  EXPECT_THAT(checkpoints(), ElementsAre("model.ckpt-1"));
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr("step 2 is not saved"), HasSubstr("variable \"w\" holds inf in 1 of 2 elements"),
            HasSubstr("step 3 is not saved"), HasSubstr("holds nan in 1 of 2 elements")));
}

TEST_F(DivergedTraining, IsSavedAgainOnceItsNumbersAreFinite) {
  testing::internal::CaptureStderr();
  MonitoredTrainingSession sess(model_.graph, saving());
  sess.run(Operation(step_), feeds(x_, std::nanf("")));
  sess.run(model_.w.initializer());
  sess.run(Operation(step_), feeds(x_, 1));
  EXPECT_THAT(checkpoints(), ElementsAre("model.ckpt-2", "model.ckpt-0"));
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace kolo
