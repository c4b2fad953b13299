#include <kolo/models/programs/best_value.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <kolo/core/base/error.h>

namespace kolo::models {
namespace {

Evaluation of_classes(double loss, std::int64_t correct = 0) {
  return {.correct = correct, .labels = 10, .loss_sum = loss * 10};
}

TEST(BestValue, IsTheLeastLoss) {
  BestValue best("test_loss");
  EXPECT_TRUE(best.note(10, of_classes(2)));
  EXPECT_FALSE(best.note(20, of_classes(2)));  // not better
  EXPECT_FALSE(best.note(30, of_classes(3)));
  EXPECT_EQ(best.waited(), 2);
  EXPECT_TRUE(best.note(40, of_classes(1)));
  EXPECT_EQ(best.waited(), 0);
  EXPECT_EQ(best.text(), "test_loss 1 at step 40");
}

TEST(BestValue, IsTheLargestAccuracy) {
  BestValue best("test_accuracy");
  EXPECT_TRUE(best.note(1, of_classes(0, 5)));
  EXPECT_FALSE(best.note(2, of_classes(0, 4)));
  EXPECT_TRUE(best.note(3, of_classes(0, 6)));
}

TEST(BestValue, IsNeverNaN) {
  BestValue best("test_loss");
  EXPECT_FALSE(best.note(1, of_classes(std::nan(""))));
  EXPECT_EQ(best.waited(), 1);
  EXPECT_EQ(best.text(), "test_loss was never a number");
  EXPECT_TRUE(best.note(2, of_classes(7)));
  EXPECT_FALSE(best.note(3, of_classes(std::nan(""))));
}

TEST(BestValue, GoesOnWithAllItsBits) {
  const double third = 1.0 / 3;
  BestValue before("test_mae"), after("test_mae"), other("test_loss");
  Evaluation numbers;
  numbers.errors = NumberErrors{.mae = third, .r2 = {}};
  before.note(5, numbers);
  before.note(6, numbers);
  after.restore(before.state());
  EXPECT_EQ(after.waited(), 1);
  EXPECT_EQ(after.step(), 5);
  EXPECT_FALSE(after.note(7, numbers));  // equal in all bits, so not better
  other.restore(before.state());
  EXPECT_EQ(other.waited(), 0);
}

TEST(BestValue, NamesTheMetricsThatAModelHas) {
  EXPECT_NO_THROW(BestValue("test_loss").check(LabelKind::numbers));
  EXPECT_NO_THROW(BestValue("test_accuracy").check(LabelKind::one_class));
  EXPECT_NO_THROW(BestValue("test_exact_match").check(LabelKind::several));
  EXPECT_THAT([] { BestValue("test_accuracy").check(LabelKind::several); },
              testing::ThrowsMessage<InvalidArgumentError>(
                  testing::HasSubstr("several labels have test_loss and test_exact_match")));
  EXPECT_THAT([] { BestValue("test_r2").check(LabelKind::one_class); },
              testing::ThrowsMessage<InvalidArgumentError>(
                  testing::HasSubstr("classes have test_loss and test_accuracy")));
  EXPECT_THAT([] { BestValue("test_accuracy").check(LabelKind::numbers); },
              testing::ThrowsMessage<InvalidArgumentError>(
                  testing::HasSubstr("numbers have test_loss, test_mae, test_rmse and test_r2")));
}

}  // namespace
}  // namespace kolo::models
