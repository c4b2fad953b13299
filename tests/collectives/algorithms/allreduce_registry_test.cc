#include <kolo/collectives/algorithms/allreduce_registry.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include <kolo/collectives/algorithms/ring.h>
#include <kolo/collectives/engine/options.h>
#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::ThrowsMessage;

// As a new algorithm's file does it.
const RegisterAllreduce zigzag("zigzag", ring_allreduce);

TEST(AllreduceRegistry, FindsWhatAFileHasRegistered) {
  EXPECT_EQ(allreduce_factory("zigzag"), &ring_allreduce);
  EXPECT_THAT(allreduce_names(), Contains("zigzag"));
}

TEST(AllreduceRegistry, GivesNothingForAnUnknownName) { EXPECT_EQ(allreduce_factory("zagzig"), nullptr); }

TEST(AllreduceRegistry, RefusesASecondAlgorithmOfOneName) {
  EXPECT_THAT([] { RegisterAllreduce("ring", ring_allreduce); },
              ThrowsMessage<InternalError>(HasSubstr("\"ring\" is registered twice")));
}

TEST(AllreduceRegistry, ItsNamesAreValuesOfTheOption) {
  setenv("KOLO_ALLREDUCE", "zigzag", 1);
  EXPECT_EQ(EngineOptions::from_environment().allreduce, "zigzag");
  unsetenv("KOLO_ALLREDUCE");
}

}  // namespace
}  // namespace kolo
