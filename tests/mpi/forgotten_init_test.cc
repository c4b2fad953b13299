// A program without init(), under the real mpirun and by hand.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/shell_command.h"
#include "tests/support/paths.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// ranks: 0 without a launcher.
Ended started(int ranks, const std::string& what) {
  const std::string launcher =
      ranks == 0 ? "" : fmt::format("{} {} ", source_path("scripts/mpirun_test"), ranks);
  return run_command(fmt::format("{}{} {} 2>&1", launcher, KOLO_FORGOTTEN_INIT_PROBE, what));
}

TEST(ForgottenInit, IsRefusedUnderALauncherWithTheLineToAdd) {
  for (const char* what : {"session", "optimizer"}) {
    const Ended ended = started(2, what);
    EXPECT_NE(ended.code, 0) << what;
    EXPECT_THAT(ended.output, AllOf(HasSubstr("Open MPI started 2 ranks"),
                                    HasSubstr("kolo::init(&argc, &argv);"), Not(HasSubstr("trained"))))
        << what;
  }
}

TEST(ForgottenInit, IsNoneInAProgramOfOneProcess) {
  for (const char* what : {"session", "optimizer"})
    for (const int ranks : {0, 1}) {
      const Ended ended = started(ranks, what);
      EXPECT_EQ(ended.code, 0) << ended.output;
      EXPECT_THAT(ended.output, HasSubstr("trained"));
    }
}

}  // namespace
}  // namespace kolo
