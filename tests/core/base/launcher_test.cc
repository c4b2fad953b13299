#include <kolo/core/base/launcher.h>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

constexpr const char* kVariables[] = {
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
    "PMIX_NAMESPACE",       "KOLO_RANK_PROCESS",    "PMI_RANK",  "PMI_SIZE",     "KOLO_LAUNCHER",
    "KOLO_TERMINAL"};

class LauncherTest : public testing::Test {
 protected:
  LauncherTest() { clear(); }
  ~LauncherTest() override {
    clear();
    set_initialised(false);
  }
  static void clear() {
    for (const char* name : kVariables) unsetenv(name);
  }
};

TEST_F(LauncherTest, IsNoneForAProcessStartedByHand) { EXPECT_FALSE(find_launcher()); }

TEST_F(LauncherTest, PrefersTheEarlierOfTwo) {
  setenv("PMI_RANK", "0", 1);
  EXPECT_EQ(find_launcher()->name, "PMI");
  setenv("SLURM_PROCID", "0", 1);
  EXPECT_EQ(find_launcher()->name, "Slurm");
  setenv("PMIX_RANK", "0", 1);
  EXPECT_EQ(find_launcher()->name, "PMIx");
  setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  EXPECT_EQ(find_launcher()->name, "Open MPI");
}

TEST_F(LauncherTest, TellsTheNumberOfRanksOfASlurmStep) {
  setenv("SLURM_PROCID", "0", 1);
  EXPECT_FALSE(find_launcher()->size);
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  EXPECT_EQ(find_launcher()->size, 4);
}

TEST_F(LauncherTest, KnowsWhatKolorunTellsOfItself) {
  EXPECT_FALSE(is_under_kolorun());
  setenv("KOLO_LAUNCHER", "another", 1);
  EXPECT_FALSE(is_under_kolorun());
  setenv("KOLO_LAUNCHER", "kolorun", 1);
  EXPECT_TRUE(is_under_kolorun());
  setenv("KOLO_TERMINAL", "1", 1);
  EXPECT_TRUE(rewrites_lines());
  setenv("KOLO_TERMINAL", "0", 1);
  EXPECT_FALSE(rewrites_lines());
}

TEST_F(LauncherTest, TakesMpirunsPseudoTerminalForNoTerminal) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  EXPECT_TRUE(is_own_terminal(terminal));
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  EXPECT_FALSE(is_own_terminal(terminal));
  close(terminal);
}

TEST_F(LauncherTest, RefusesWhatARankHasStarted) {
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  setenv("PMIX_NAMESPACE", "123", 1);
  mark_rank_process();
  EXPECT_NO_THROW(refuse_child_of_rank());  // the rank itself
  setenv("KOLO_RANK_PROCESS", "1 1 123 - -", 1);
  EXPECT_THAT([] { refuse_child_of_rank(); },
              ThrowsMessage<FailedPreconditionError>(
                  AllOf(HasSubstr("started by rank 1 (process 1)"), HasSubstr("OMPI_*"))));
  setenv("PMIX_NAMESPACE", "124", 1);
  EXPECT_NO_THROW(refuse_child_of_rank());  // a rank of a job that a rank has started
}

TEST_F(LauncherTest, WithSeveralRanksWantsInitAndSaysWhichLineToAdd) {
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  EXPECT_THAT([] { require_init_under_launcher("DistributedOptimizer"); },
              ThrowsMessage<FailedPreconditionError>(
                  AllOf(StartsWith("DistributedOptimizer: Open MPI started 2 ranks"),
                        HasSubstr("kolo::init(&argc, &argv);"))));
  set_initialised(true);
  EXPECT_NO_THROW(require_init_under_launcher("DistributedOptimizer"));
}

TEST_F(LauncherTest, OfOneRankOrOfNoStepNeedsNoInit) {
  setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  EXPECT_NO_THROW(require_init_under_launcher("x"));
  clear();
  setenv("SLURM_PROCID", "0", 1);  // a batch script
  EXPECT_NO_THROW(require_init_under_launcher("x"));
}

}  // namespace
}  // namespace kolo::detail
