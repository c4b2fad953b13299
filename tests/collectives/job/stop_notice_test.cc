#include <kolo/collectives/job/stop_notice.h>

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/stop_signal.h>

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;

class StopNoticeTest : public testing::Test {
 protected:
  StopNoticeTest() : file_(testing::TempDir() + "stop_notice." + std::to_string(getpid())) {
    clear_stop_signal();
    set_log_level(LogLevel::error);
  }
  ~StopNoticeTest() override {
    unlink(file_.c_str());
    clear_stop_signal();
  }
  static bool stops_within(std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!stop_signal_received() && std::chrono::steady_clock::now() < deadline) poll(nullptr, 0, 5);
    return stop_signal_received();
  }
  const std::string file_;
};

TEST_F(StopNoticeTest, IsTheFileThatAppears) {
  const StopNotice notice({.file = file_, .file_every = 10ms});
  EXPECT_FALSE(stops_within(50ms));
  std::ofstream(file_).close();
  EXPECT_TRUE(stops_within(10s));
}

TEST_F(StopNoticeTest, IsTheCommandThatEndsWith0) {
  const StopNotice notice({.command = "test -e " + file_, .command_every = 10ms, .command_limit = 10s});
  EXPECT_FALSE(stops_within(100ms));
  std::ofstream(file_).close();
  EXPECT_TRUE(stops_within(10s));
}

// A program that ignores SIGCHLD does not learn how the command ends: it may have failed.
TEST_F(StopNoticeTest, IsNoCommandWhoseExitCodeIsLost) {
  signal(SIGCHLD, SIG_IGN);
  set_log_level(LogLevel::warning);
  testing::internal::CaptureStderr();
  {
    const StopNotice notice({.command = "true", .command_every = 10ms, .command_limit = 10s});
    EXPECT_FALSE(stops_within(200ms));
  }
  const std::string log = testing::internal::GetCapturedStderr();
  signal(SIGCHLD, SIG_DFL);
  const auto told = log.find("its exit code is lost, as this program ignores SIGCHLD");
  EXPECT_NE(told, std::string::npos) << log;
  EXPECT_EQ(log.find("is lost", told + 20), std::string::npos) << "told once: " << log;
}

TEST_F(StopNoticeTest, IsNoCommandThatTakesTooLong) {
  const auto begin = std::chrono::steady_clock::now();
  {
    const StopNotice notice({.command = "sleep 60", .command_every = 10ms, .command_limit = 50ms});
    EXPECT_FALSE(stops_within(200ms));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s) << "the command was waited for";
}

// As Slurm writes the local time.
std::string slurm_time(std::chrono::system_clock::time_point time) {
  std::string text = date_text(time);
  text[text.find(' ')] = 'T';
  return text;
}

TEST_F(StopNoticeTest, IsTheEndOfTheJobsTimeThatSlurmHasNotMoved) {
  setenv("SLURM_JOB_ID", "7", 1);
  auto end = std::chrono::system_clock::now() + 61s;
  int questions = 0;
  const StopNotice notice({.stop_before_s = 60, .run = [&](const auto&) {
                             if (++questions == 2) end += 1s;
                             return ProgramEnd{true, slurm_time(end), ""};
                           }});
  EXPECT_TRUE(stops_within(20s));
  EXPECT_EQ(questions, 3) << "at the start, when it is time, and when it is time for the later end";
  unsetenv("SLURM_JOB_ID");
}

TEST_F(StopNoticeTest, IsEarlierWhereTheLastSaveTookLong) {
  setenv("SLURM_JOB_ID", "7", 1);
  const auto end = std::chrono::system_clock::now() + 60s;
  note_save(0ms);
  const StopNotice notice({.stop_before_s = 5, .run = [&](const auto&) {
                             return ProgramEnd{true, slurm_time(end), ""};
                           }});
  EXPECT_FALSE(stops_within(100ms));
  note_save(30s);
  EXPECT_TRUE(stops_within(20s));
  note_save(0ms);
  unsetenv("SLURM_JOB_ID");
}

TEST_F(StopNoticeTest, IsNoneWhereNothingIsAskedFor) {
  EXPECT_EQ(StopNotice::of({}, true), nullptr);
  EXPECT_EQ(StopNotice::of({.stop_before_s = 0}, true), nullptr);
  EXPECT_EQ(StopNotice::of({.stop_before_s = 60}, false), nullptr) << "rank 0 alone asks Slurm";
}

TEST_F(StopNoticeTest, LeavesTheJobsEndToKolorun) {
  setenv("KOLO_STOP_BEFORE", "20", 1);
  EXPECT_EQ(StopNotice::plan_of_environment().stop_before_s, 20);
  setenv("KOLO_LAUNCHER", "kolorun", 1);
  EXPECT_EQ(StopNotice::plan_of_environment().stop_before_s, std::nullopt);
  unsetenv("KOLO_LAUNCHER");
  setenv("KOLO_STOP_BEFORE", "soon", 1);
  EXPECT_THROW(StopNotice::plan_of_environment(), InvalidArgumentError);
  unsetenv("KOLO_STOP_BEFORE");
}

TEST_F(StopNoticeTest, EndsWithoutWaitingForItsNextLook) {
  const auto begin = std::chrono::steady_clock::now();
  { const StopNotice notice({.file = file_, .file_every = 60s}); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

}  // namespace
}  // namespace kolo::detail
