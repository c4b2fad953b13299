// One checkpoint folder under changing numbers of ranks, under the real mpirun.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/training/temporary_directory.h"
#include "tests/shell_command.h"
#include "tests/support/paths.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string train(int ranks, const TemporaryDirectory& folder, int last_step) {
  const Ended ended = run_command(fmt::format("env MPIRUN_TEST_SECONDS=30 {} {} {} {} {} 2>&1",
                                              source_path("scripts/mpirun_test"), ranks,
                                              KOLO_CHECKPOINT_PROBE, folder.path(), last_step));
  EXPECT_EQ(ended.code, 0) << ended.output;
  return ended.output;
}

TEST(CheckpointOfRanks, ServesAnyNumberOfThem) {
  const TemporaryDirectory folder;
  EXPECT_THAT(train(3, folder, 2), HasSubstr("rank 2 of 3: step 0, shard right, residual fresh"));
  EXPECT_THAT(train(3, folder, 3), AllOf(HasSubstr("rank 0 of 3: step 2, shard right, residual kept"),
                                         HasSubstr("rank 1 of 3: step 2, shard right, residual kept"),
                                         HasSubstr("rank 2 of 3: step 2, shard right, residual kept"),
                                         Not(HasSubstr("starts afresh"))));
  EXPECT_THAT(train(2, folder, 5),
              AllOf(HasSubstr("rank 0 of 2: step 3, shard right, residual fresh"),
                    HasSubstr("rank 1 of 2: step 3, shard right, residual fresh"),
                    HasSubstr("was written by 3 ranks"), HasSubstr("starts afresh on 2")));
  EXPECT_THAT(train(1, folder, 6), HasSubstr("rank 0 of 1: step 5, shard right, residual none"));
  EXPECT_THAT(train(3, folder, 7), AllOf(HasSubstr("rank 0 of 3: step 6, shard right, residual fresh"),
                                         HasSubstr("rank 1 of 3: step 6, shard right, residual fresh")));
}

}  // namespace
}  // namespace kolo
