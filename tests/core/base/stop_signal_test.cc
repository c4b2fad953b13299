// Each test runs in a child process of its own: signals and what they set are the process's.
#include <gmock/gmock.h>

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include <kolo/core/base/process.h>
#include <kolo/core/base/stop_signal.h>

namespace kolo {
namespace {

using ::testing::Eq;
using ::testing::ExitedWithCode;

void install_under(const char* launcher) {
  if (launcher != nullptr) setenv("KOLO_LAUNCHER", launcher, 1);
  else unsetenv("KOLO_LAUNCHER");
  install_stop_signals();
}

[[noreturn]] void exit_with(bool as_expected) { _exit(as_expected ? 0 : 1); }

TEST(StopSignalDeathTest, IsSetBySigterm) {
  EXPECT_EXIT(
      {
        install_under(nullptr);
        const bool before = stop_signal_received();
        raise(SIGTERM);
        exit_with(!before && stop_signal_received());
      },
      ExitedWithCode(0), Eq(""));
}

TEST(StopSignalDeathTest, IsSetByCtrlCWhichSaysWhatTheNextOneDoes) {
  EXPECT_EXIT(
      {
        signal(SIGINT, SIG_DFL);  // these tests may run in a shell's background
        install_under(nullptr);
        raise(SIGINT);
        exit_with(stop_signal_received() && is_about_to_end());
      },
      ExitedWithCode(0), Eq("\nstopping after this step; Ctrl-C again ends at once\n"));
}

TEST(StopSignalDeathTest, ASecondCtrlCExitsAtOnce) {
  EXPECT_EXIT(
      {
        signal(SIGINT, SIG_DFL);
        install_under(nullptr);
        raise(SIGINT);
        raise(SIGINT);
        exit_with(true);
      },
      ExitedWithCode(128 + SIGINT), testing::_);
}

// As a shell starts what is in the background.
TEST(StopSignalDeathTest, IsNotSetByAnIgnoredCtrlC) {
  EXPECT_EXIT(
      {
        signal(SIGINT, SIG_IGN);
        install_under(nullptr);
        raise(SIGINT);
        exit_with(!stop_signal_received());
      },
      ExitedWithCode(0), Eq(""));
}

TEST(StopSignalDeathTest, LeavesCtrlCToTheProgramThatHandlesIt) {
  EXPECT_EXIT(
      {
        signal(SIGINT, [](int) { _exit(7); });
        install_under(nullptr);
        raise(SIGINT);
        exit_with(true);
      },
      ExitedWithCode(7), Eq(""));
}

TEST(StopSignalDeathTest, IsSetBySigusr1AnyNumberOfTimes) {
  EXPECT_EXIT(
      {
        install_under(nullptr);
        raise(SIGUSR1);
        raise(SIGUSR1);
        exit_with(stop_signal_received());
      },
      ExitedWithCode(0), Eq(""));
}

TEST(StopSignalDeathTest, OnlySigtermIsAboutToEndTheProcess) {
  EXPECT_EXIT(
      {
        install_under(nullptr);
        raise(SIGUSR1);
        const bool before = is_about_to_end();
        raise(SIGTERM);
        exit_with(!before && is_about_to_end());
      },
      ExitedWithCode(0), Eq(""));
}

TEST(StopSignalDeathTest, SoDoesTheOneThatARecordIsWrittenAt) {
  EXPECT_EXIT(
      {
        install_record_signals();
        raise(SIGUSR2);
        const bool before = is_about_to_end();
        raise(SIGTERM);
        exit_with(!before && is_about_to_end());
      },
      ExitedWithCode(0), Eq(""));
}

TEST(StopSignalDeathTest, ASecondSigtermExitsAtOnce) {
  EXPECT_EXIT(
      {
        install_under(nullptr);
        raise(SIGTERM);
        raise(SIGTERM);
        exit_with(true);
      },
      ExitedWithCode(128 + SIGTERM), Eq(""));
}

TEST(StopSignalDeathTest, ASigtermAfterSigusr1IsTheFirstOne) {
  EXPECT_EXIT(
      {
        install_under(nullptr);
        raise(SIGUSR1);
        raise(SIGTERM);
        exit_with(stop_signal_received());
      },
      ExitedWithCode(0), Eq(""));
}

TEST(StopSignalDeathTest, ClearedLetsAnotherTrainingBeStoppedPolitely) {
  EXPECT_EXIT(
      {
        install_under(nullptr);
        raise(SIGTERM);
        clear_stop_signal();
        const bool cleared = !stop_signal_received();
        raise(SIGTERM);
        exit_with(cleared && stop_signal_received());
      },
      ExitedWithCode(0), Eq(""));
}

TEST(StopSignalDeathTest, TellsKolorunTheLastStepOnTheFirstSigtermAlone) {
  EXPECT_EXIT(
      {
        install_under("kolorun");
        report_completed_step(41);
        report_completed_step(42);
        raise(SIGUSR1);
        raise(SIGTERM);
        report_completed_step(43);
        raise(SIGTERM);
      },
      ExitedWithCode(128 + SIGTERM), Eq("\x01kolo last-step 42\n"));
}

TEST(StopSignalDeathTest, TellsTheLargestStep) {
  EXPECT_EXIT(
      {
        install_under("kolorun");
        report_completed_step(INT64_MAX);
        raise(SIGTERM);
        exit_with(true);
      },
      ExitedWithCode(0), Eq(std::string(kLastStepMarker) + "9223372036854775807\n"));
}

TEST(StopSignalDeathTest, TellsSomeStepsWithTheirAgeWhereKolorunMayStartTheJobAgain) {
  EXPECT_EXIT(
      {
        setenv("KOLO_JOB_START", "a:1", 1);
        install_under("kolorun");
        report_completed_step(41);
        report_completed_step(42);
        usleep(300'000);
        report_completed_step(43);
        raise(SIGTERM);
        exit_with(true);
      },
      ExitedWithCode(0),
      testing::MatchesRegex("\x01kolo takes-requests\n\x01kolo last-step 41 0\n\x01kolo last-step 43 "
                            "0\n\x01kolo last-step 43 [0-9]+\n"));
}

TEST(StopSignalDeathTest, TellsNobodyElseTheLastStep) {
  EXPECT_EXIT(
      {
        install_under("srun");
        report_completed_step(42);
        raise(SIGTERM);
        exit_with(true);
      },
      ExitedWithCode(0), Eq(""));
}

TEST(StopSignalDeathTest, TellsThatThisHostGoesWhereTheRequestSaysSo) {
  const std::string line = kHostGoesMarker + process().hostname + "\n";
  EXPECT_EXIT(
      {
        install_under("kolorun");
        sigqueue(getpid(), SIGUSR1, {.sival_int = kHostGoesValue});
        exit_with(stop_signal_received());
      },
      ExitedWithCode(0), Eq(line));
  EXPECT_EXIT(
      {
        install_under("kolorun");
        raise(SIGUSR1);
        exit_with(stop_signal_received());
      },
      ExitedWithCode(0), Eq(""));
}

TEST(StopSignalDeathTest, TellsNoStepBeforeOneIsComplete) {
  EXPECT_EXIT(
      {
        install_under("kolorun");
        raise(SIGTERM);
        exit_with(true);
      },
      ExitedWithCode(0), Eq(""));
}

// The handler may come between a system call and the look at its errno.
TEST(StopSignalDeathTest, LeavesErrnoAloneEvenWhereStderrIsClosed) {
  EXPECT_EXIT(
      {
        install_under("kolorun");
        report_completed_step(1);
        close(STDERR_FILENO);
        errno = ENOENT;
        raise(SIGTERM);
        exit_with(errno == ENOENT);
      },
      ExitedWithCode(0), Eq(""));
}

}  // namespace
}  // namespace kolo
