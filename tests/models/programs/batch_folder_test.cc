#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/models/programs/batch_folder.h>
#include <kolo/models/programs/kept_switches.h>

namespace kolo::models {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const kolo::detail::BatchJob kTask = {.job = "46_3", .array = "46", .task = "3"};

TEST(BatchFolder, IsNamedAfterTheJobAndItsTask) {
  EXPECT_EQ(in_batch_job("log-dir", "ck/{job}", kTask), "ck/46_3");
  EXPECT_EQ(in_batch_job("log-dir", "{array}/ck-{array}", kTask), "3/ck-3");
}

TEST(BatchFolder, StaysAsItIsWithoutBraces) {
  EXPECT_EQ(in_batch_job("log-dir", "ck", {}), "ck");
  EXPECT_EQ(in_batch_job("log-dir", "a{b", {}), "a{b");
  EXPECT_EQ(in_batch_job("log-dir", "", {}), "");
}

TEST(BatchFolder, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT([] { in_batch_job("checkpoint-dir", "ck/{rank}", kTask); },
              ThrowsMessage<UsageError>(
                  HasSubstr("--checkpoint-dir \"ck/{rank}\": {rank} is not known; allowed: {job}, {array}")));
  EXPECT_THAT([] { in_batch_job("log-dir", "{job}", {}); },
              ThrowsMessage<UsageError>(HasSubstr("this is no batch job; leave {job} out")));
  EXPECT_THAT([] { in_batch_job("log-dir", "{array}", {.job = "46"}); },
              ThrowsMessage<UsageError>(HasSubstr("this is no task of a job array; leave {array} out")));
}

}  // namespace
}  // namespace kolo::models
