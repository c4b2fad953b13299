// Calls that a binding refuses before kolo sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class RefuseCall : public testing::TestWithParam<const char*> {};  // the call's name
INSTANTIATE_TEST_SUITE_P(Names, RefuseCall, testing::Values("g", ""));

TEST_P(RefuseCall, EndsTheCallsOfTheOtherRanksAndTheEngineGoesOn) {
  if (size() == 1) GTEST_SKIP() << "nobody waits";
  const EagerOptions options{.name = GetParam()};
  const auto call = [&] { allreduce(Tensor::scalar(1.0f), ReduceOp::sum, options); };
  if (rank() == 1) refuse_call("allreduce", "the array is read-only", options);
  else
    EXPECT_THAT(call, ThrowsMessage<FailedPreconditionError>(testing::MatchesRegex(
                          "rank 1 refused (g|allreduce.noname.*): the array is read-only")));
  EXPECT_EQ(allreduce(Tensor::scalar(1.0f), ReduceOp::sum, options).value<float>(),
            static_cast<float>(size()));
}

TEST(RefusedOperation, MustExist) {
  EXPECT_THAT([] { refuse_call("all_reduce", "no"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("there is no operation \"all_reduce\"")));
}

}  // namespace
}  // namespace kolo
