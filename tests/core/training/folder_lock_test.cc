#include <kolo/core/training/folder_lock.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/core/training/monitored_session.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"
#include "tests/recorded_calls.h"

namespace kolo::detail {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::ThrowsMessage;

constexpr std::chrono::milliseconds kAtOnce{0};

// A process that holds the folder until it is killed, or lets it go after a while.
class Holder {
 public:
  explicit Holder(const std::string& folder, std::optional<unsigned> microseconds = {}) {
    int ready[2];
    if (pipe(ready) != 0) throw std::runtime_error("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      std::optional<FolderLock> lock(std::in_place, folder, kAtOnce);
      [[maybe_unused]] const ssize_t written = ::write(ready[1], "x", 1);
      if (!microseconds) pause();
      usleep(*microseconds);
      lock.reset();
      _exit(0);
    }
    char byte = 0;
    [[maybe_unused]] const ssize_t taken = ::read(ready[0], &byte, 1);
    close(ready[0]);
    close(ready[1]);
  }
  ~Holder() { end(); }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

class FolderLockTest : public testing::Test {
 protected:
  FolderLockTest() { set_log_level(LogLevel::warning); }
  TemporaryDirectory folder_;
};

TEST_F(FolderLockTest, LeavesNothingBehind) {
  {
    const FolderLock lock(folder_.path());
    EXPECT_TRUE(lock.is_held());
    EXPECT_THAT(folder_.names(), ElementsAre(kLockFile));
  }
  EXPECT_THAT(folder_.names(), IsEmpty());
}

TEST_F(FolderLockTest, NamesTheProcessAndTheHostThatHoldIt) {
  const Holder other(folder_.path());
  EXPECT_THAT([&] { FolderLock(folder_.path(), kAtOnce); },
              ThrowsMessage<FailedPreconditionError>(
                  AllOf(HasSubstr("the checkpoint folder " + folder_.path() + " is in use"),
                        HasSubstr(fmt::format("process {} on {}", other.pid(), process().hostname)))));
}

TEST_F(FolderLockTest, SaysAtOnceThatThisProcessHoldsItItself) {
  const FolderLock lock(folder_.path());
  EXPECT_THAT([&] { FolderLock(folder_.path()); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("this process itself")));
}

TEST_F(FolderLockTest, OfAKilledProcessIsInNobodysWay) {
  Holder other(folder_.path());
  other.end();
  EXPECT_THAT(folder_.names(), ElementsAre(kLockFile)) << "what the killed process left";
  EXPECT_TRUE(FolderLock(folder_.path(), kAtOnce).is_held());
}

TEST_F(FolderLockTest, WaitsForAProcessThatIsAboutToEnd) {
  const Holder other(folder_.path(), 200'000);
  EXPECT_TRUE(FolderLock(folder_.path()).is_held());
}

// As where a host is lost whose lock an NFS server keeps.
TEST_F(FolderLockTest, IsTakenFromAnEarlierStartOfTheSameJobWhichThenSavesNothing) {
  setenv("KOLO_JOB_START", "a:1", 1);
  const FolderLock early(folder_.path());
  EXPECT_NO_THROW(early.require_unbroken());
  const pid_t later = fork();
  if (later == 0) {
    setenv("KOLO_JOB_START", "a:2", 1);
    const FolderLock lock(folder_.path());
    lock.require_unbroken();
    _exit(lock.is_held() ? 0 : 1);
  }
  int status = -1;
  waitpid(later, &status, 0);
  unsetenv("KOLO_JOB_START");
  EXPECT_EQ(status, 0);
  EXPECT_THAT(
      [&] { early.require_unbroken(); },
      ThrowsMessage<FailedPreconditionError>(HasSubstr("a later start of the job has taken the folder")));
}

TEST_F(FolderLockTest, NamesTheArrayWhoseOtherTaskHoldsIt) {
  setenv("SLURM_JOB_ID", "48", 1);
  setenv("SLURM_ARRAY_JOB_ID", "46", 1);
  setenv("SLURM_ARRAY_TASK_ID", "2", 1);
  const Holder other(folder_.path());
  const auto refused = [&] { FolderLock(folder_.path(), kAtOnce); };
  const auto refused_without_waiting = [&] { FolderLock(folder_.path(), std::chrono::hours(1)); };
  const std::string hint = "(another task of this job array: put {array} into --checkpoint-dir)";
  EXPECT_THAT(refused, ThrowsMessage<FailedPreconditionError>(Not(HasSubstr(hint)))) << "the same task";
  setenv("SLURM_ARRAY_TASK_ID", "3", 1);
  EXPECT_THAT(refused_without_waiting, ThrowsMessage<FailedPreconditionError>(HasSubstr(hint)));
  setenv("SLURM_ARRAY_JOB_ID", "47", 1);
  EXPECT_THAT(refused, ThrowsMessage<FailedPreconditionError>(Not(HasSubstr(hint))));
  for (const char* name : {"SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID"}) unsetenv(name);
}

TEST_F(FolderLockTest, IsNotTakenFromAnotherJobOrALaterStart) {
  setenv("KOLO_JOB_START", "a:2", 1);
  const Holder other(folder_.path());
  constexpr auto kLongEnough = FolderLock::kPatienceWithOwnJob + std::chrono::milliseconds(200);
  for (const char* start : {"b:3", "a:2", "a:1", "nonsense", ""}) {
    setenv("KOLO_JOB_START", start, 1);
    EXPECT_THROW(FolderLock(folder_.path(), kLongEnough), FailedPreconditionError) << start;
  }
  unsetenv("KOLO_JOB_START");
}

// Between the opening of the file and the locking of it.
TEST_F(FolderLockTest, IsNotOfAFileThatItsLastHolderRemovedMeanwhile) {
  RecordedCalls calls(folder_.path());
  calls.before("lock " + std::string(kLockFile), [&] { std::filesystem::remove(folder_ / kLockFile); });
  const FolderLock lock(folder_.path(), kAtOnce);
  EXPECT_THAT(folder_.names(), ElementsAre(kLockFile));
}

// Where a removed file counted, the third would lock a new one while the second holds that.
TEST_F(FolderLockTest, IsOneAmongManyThatComeAndGo) {
  constexpr int kProcesses = 4, kRounds = 100;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    for (int round = 0; round < kRounds; ++round) {
      const FolderLock lock(folder_.path(), std::chrono::seconds(60));
      // mkdir fails where two are inside.
      if (mkdir((folder_ / "inside").c_str(), 0700) != 0 || rmdir((folder_ / "inside").c_str()) != 0)
        _exit(1);
    }
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(FolderLockTest, IsDoneWithoutWhereTheFileSystemHasNone) {
  for (const int error : {ENOLCK, ENOSYS, EOPNOTSUPP}) {
    RecordedCalls calls(folder_.path());
    calls.fail("lock " + std::string(kLockFile), error);
    testing::internal::CaptureStderr();
    EXPECT_FALSE(FolderLock(folder_.path(), kAtOnce).is_held());
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("knows no locks"));
  }
  EXPECT_THAT(folder_.names(), IsEmpty());
}

TEST_F(FolderLockTest, FollowsNoLink) {
  const TemporaryDirectory other;
  write_bytes(other / "victim", "precious");
  std::filesystem::create_symlink(other / "victim", folder_ / kLockFile);
  EXPECT_THROW(FolderLock(folder_.path(), kAtOnce), FailedPreconditionError);
  EXPECT_EQ(bytes_of_file(other / "victim"), "precious");
}

TEST_F(FolderLockTest, IsHeldByASessionThatSavesUntilItIsClosed) {
  CountingGraph first, second;
  const MonitoredTrainingSessionOptions options{.checkpoint_dir = folder_.path(), .save_checkpoint_steps = 1};
  MonitoredTrainingSession training(first.graph, options);
  training.run(first.train);
  EXPECT_THAT([&] { MonitoredTrainingSession(second.graph, options); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("is in use")));
  training.run(first.train);
  training.close();
  MonitoredTrainingSession again(second.graph, options);
  EXPECT_EQ(again.global_step(), 2);
}

TEST_F(FolderLockTest, LetsASessionSaveNothingOnceItIsTaken) {
  CountingGraph counting;
  MonitoredTrainingSession session(counting.graph,
                                   {.checkpoint_dir = folder_.path(), .save_checkpoint_steps = 1});
  const auto before = folder_.names();
  std::filesystem::remove(folder_ / kLockFile);
  EXPECT_THAT([&] { session.run(counting.train); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("nothing is saved there by this one")));
  auto names = before;
  std::erase(names, kLockFile);
  EXPECT_EQ(folder_.names(), names);
}

TEST_F(FolderLockTest, OfASessionThatFailedToStartIsGivenUp) {
  CountingGraph model;
  struct Failing : SessionRunHook {
    void after_create_session(Session&) override { throw InvalidArgumentError("of the hook"); }
  };
  EXPECT_THROW(MonitoredTrainingSession(model.graph, {.checkpoint_dir = folder_.path(),
                                                      .save_checkpoint_steps = 1,
                                                      .hooks = {std::make_shared<Failing>()}}),
               InvalidArgumentError);
  EXPECT_TRUE(FolderLock(folder_.path(), kAtOnce).is_held());
}

TEST_F(FolderLockTest, IsNotTakenByASessionThatOnlyRestores) {
  CountingGraph model;
  const MonitoredTrainingSessionOptions saving{.checkpoint_dir = folder_.path(), .save_checkpoint_steps = 1};
  MonitoredTrainingSession training(model.graph, saving);
  training.run(model.train);
  CountingGraph other;
  const auto names = folder_.names();
  MonitoredTrainingSession reader(other.graph,
                                  {.checkpoint_dir = folder_.path(), .save_checkpoint_steps = 0});
  EXPECT_EQ(reader.global_step(), 1);
  reader.close();
  EXPECT_EQ(folder_.names(), names);
}

}  // namespace
}  // namespace kolo::detail
