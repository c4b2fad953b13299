// One rank here; what several ranks do is in tests/mpi.
#include <kolo/optimizer/hooks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>

#include "tests/optimizer/small_training.h"

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class BroadcastHookTest : public ::testing::Test {
 protected:
  Graph graph;
  Scope s{graph};
  Variable v{s.named("v"), constant(s, Tensor::of<float>({2}, {1, 2}))};
  Operation initializer = global_variables_initializer(s);
  Session session{graph};
};

TEST_F(BroadcastHookTest, LeavesTheValuesOfASingleRank) {
  session.run(initializer);
  BroadcastGlobalVariablesHook(0).after_create_session(session);
  EXPECT_THAT(elements<float>(session.run(v.read())), ElementsAre(1, 2));
}

TEST_F(BroadcastHookTest, RefusesARootThatIsNoRank) {
  session.run(initializer);
  EXPECT_THAT(
      [&] { BroadcastGlobalVariablesHook(2).after_create_session(session); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("root rank 2 is outside the process set of 1 ranks")));
}

TEST_F(BroadcastHookTest, RefusesARootWithoutValues) {
  EXPECT_THAT([&] { BroadcastGlobalVariablesHook(0).after_create_session(session); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("Attempting to use uninitialized value v")));
}

}  // namespace
}  // namespace kolo
