// What keeps a folder or a checkpoint from being read is no word on what it holds: nothing is taken in its
// place.
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/monitored_session.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"
#include "tests/recorded_calls.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// A folder with checkpoints of steps 0, 1 and 2, in which calls can be made to fail.
class CheckpointErrors : public testing::Test {
 protected:
  CheckpointErrors() {
    set_log_level(LogLevel::warning);
    MonitoredTrainingSession sess(model_.graph,
                                  {.checkpoint_dir = folder_.path(), .save_checkpoint_steps = 1});
    for (int i = 0; i < 2; ++i) sess.run(model_.train);
    sess.close();
    calls_.emplace(folder_.path());
  }

  void start() {
    MonitoredTrainingSession(model_.graph, {.checkpoint_dir = folder_.path(), .save_checkpoint_steps = 1})
        .close();
  }

  TemporaryDirectory folder_;
  CountingGraph model_;
  std::optional<RecordedCalls> calls_;
};

TEST_F(CheckpointErrors, AFolderThatCannotBeListedIsNotAnEmptyOne) {
  calls_->fail("list .", EIO);
  EXPECT_THAT(
      [&] { list_checkpoints(folder_.path()); },
      ThrowsMessage<UnknownError>(AllOf(HasSubstr("cannot list the checkpoint folder " + folder_.path()),
                                        HasSubstr("Input/output error"))));
  EXPECT_THROW(start(), UnknownError);
}

TEST_F(CheckpointErrors, ACheckpointThatCannotBeReadStopsTheStart) {
  for (const char* file : {"model.ckpt-2.safetensors", "model.ckpt-2.index.json"}) {
    for (const auto& [call, error] : {std::pair("read ", EIO), std::pair("open ", EACCES)}) {
      calls_.emplace(folder_.path()).fail(std::string(call) + file, error);
      EXPECT_THAT([&] { start(); },
                  ThrowsMessage<Error>(AllOf(HasSubstr("cannot read " + (folder_ / file)),
                                             HasSubstr("no older checkpoint is taken in its place"))));
    }
  }
}

TEST_F(CheckpointErrors, AStartThatWasStoppedChangesNothing) {
  const auto names = folder_.names();
  calls_->fail("read model.ckpt-2.safetensors", EIO);
  EXPECT_THROW(start(), UnknownError);
  EXPECT_EQ(folder_.names(), names);
  EXPECT_EQ(list_checkpoints(folder_.path()).front(), "model.ckpt-2");
}

TEST_F(CheckpointErrors, AStateFileThatCannotBeReadStopsTheStart) {
  calls_->fail("read checkpoint", EIO);
  EXPECT_THROW(start(), UnknownError);
}

TEST_F(CheckpointErrors, AStateFileThatIsAPipeOrADeviceIsIgnored) {
  const std::string path = folder_ / "checkpoint";
  for (const bool pipe : {true, false}) {
    std::filesystem::remove(path);
    if (pipe) ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    else std::filesystem::create_symlink("/dev/zero", path);
    testing::internal::CaptureStderr();
    EXPECT_FALSE(read_checkpoint_state(folder_.path()));
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                AllOf(HasSubstr("Checkpoint ignored: "), HasSubstr("not a file")));
    EXPECT_EQ(list_checkpoints(folder_.path()).front(), "model.ckpt-2");
  }
}

TEST_F(CheckpointErrors, AHugeStateFileTakesNoMemory) {
  std::filesystem::resize_file(folder_ / "checkpoint", std::uintmax_t{1} << 40);
  testing::internal::CaptureStderr();
  EXPECT_FALSE(read_checkpoint_state(folder_.path()));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("at most"));
}

// Between a look at the folder and the reading the training that goes on there may save and remove.
TEST_F(CheckpointErrors, AReaderLooksAgainWhereCheckpointsWereRemovedMeanwhile) {
  calls_->before("open model.ckpt-2.index.json", [&] {
    for (const char* ending : {".safetensors", ".index.json"})
      std::filesystem::rename(folder_ / ("model.ckpt-2" + std::string(ending)),
                              folder_ / ("model.ckpt-9" + std::string(ending)));
    for (const char* old : {"model.ckpt-0", "model.ckpt-1"}) remove_checkpoint(folder_ / old);
  });
  testing::internal::CaptureStderr();
  EXPECT_EQ(newest_intact_checkpoint(folder_.path()), folder_ / "model.ckpt-9");
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace kolo
