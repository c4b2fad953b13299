#include <kolo/optimizer/registry.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>

#include "tests/optimizer/small_training.h"

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::ThrowsMessage;

TEST(Registry, KnowsTheOptimizersOfTheCommandLine) {
  EXPECT_THAT(registered_optimizers(),
              IsSupersetOf({"adadelta", "adagrad", "adam", "adamw", "ftrl", "lamb", "lars", "lion",
                            "momentum", "nesterov", "rmsprop", "sgd"}));
}

TEST(Registry, HandsRateAndMomentumToTheOptimizer) {
  const auto optimizer = make_optimizer("nesterov", {.learning_rate = 2.0, .momentum = 0.9});
  EXPECT_NEAR(train<double>(*optimizer, {1}, {0.1}, 2)[1][0], 0.078, 1e-12);
}

TEST(Registry, NamesTheNearestOptimizer) {
  EXPECT_THAT(
      [] { make_optimizer("adma"); },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("\"adma\""), HasSubstr("did you mean \"adam\"?"))));
}

}  // namespace
}  // namespace kolo
