#include <kolo/models/programs/number_errors.h>

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace kolo::models {
namespace {

// Two outputs of four samples. By hand: errors 1 0 -1 2 and 0 0 3 1.
constexpr float kFound[] = {2, 10, 2, 20, 2, 33, 6, 41}, kRight[] = {1, 10, 2, 20, 3, 30, 4, 40};

TEST(NumberErrors, AreThoseCountedByHand) {
  ErrorSums sums({"a", "b"});
  for (int i = 0; i < 8; i += 2) sums.add(kFound + i, kRight + i);
  const NumberErrors errors = sums.errors();
  EXPECT_DOUBLE_EQ(errors.mae, 1);                // 8 / 8
  EXPECT_DOUBLE_EQ(errors.rmse, std::sqrt(2.0));  // √(16 / 8)
  ASSERT_TRUE(errors.r2);
  EXPECT_DOUBLE_EQ(*errors.r2, ((1 - 6.0 / 5) + (1 - 10.0 / 500)) / 2);
  ASSERT_EQ(errors.each.size(), 2);
  EXPECT_EQ(errors.each[1].name, "b");
  EXPECT_DOUBLE_EQ(errors.each[0].mae, 1);                // 4 / 4
  EXPECT_DOUBLE_EQ(errors.each[1].mae, 1);                // 4 / 4
  EXPECT_DOUBLE_EQ(errors.each[0].rmse, std::sqrt(1.5));  // √(6 / 4)
  EXPECT_DOUBLE_EQ(errors.each[1].rmse, std::sqrt(2.5));  // √(10 / 4)
  EXPECT_DOUBLE_EQ(*errors.each[1].r2, 1 - 10.0 / 500);
}

TEST(NumberErrors, AreTheSameOverAnyPartsEmptyOnesToo) {
  const std::vector<std::string> names = {"a", "b"};
  ErrorSums all(names), parts[3] = {ErrorSums(names), ErrorSums(names), ErrorSums(names)}, joined(names);
  for (int i = 0; i < 8; i += 2) {
    all.add(kFound + i, kRight + i);
    parts[i == 0 ? 0 : 2].add(kFound + i, kRight + i);
  }
  for (const ErrorSums& part : parts) joined.add_numbers(part.numbers());
  EXPECT_DOUBLE_EQ(joined.errors().mae, all.errors().mae);
  EXPECT_DOUBLE_EQ(joined.errors().rmse, all.errors().rmse);
  EXPECT_NEAR(*joined.errors().r2, *all.errors().r2, 1e-12);
}

TEST(NumberErrors, KeepTheirDigitsWhereNumbersAreLargeAndAlike) {
  ErrorSums sums({"a"});
  for (const float right : {16777214.F, 16777215.F, 16777216.F}) sums.add(&right, &right);
  const float found = 16777214, right = 16777215;
  sums.add(&found, &right);
  EXPECT_NEAR(*sums.errors().r2, 1 - 1 / 2.0, 1e-9);  // the spread around 16777215 is 2
}

TEST(NumberErrors, HaveNoShareWhereAllNumbersAreAlike) {
  ErrorSums sums({"a"});
  const float found = 3, right = 2;
  sums.add(&found, &right);
  sums.add(&found, &right);
  EXPECT_FALSE(sums.errors().r2);
}

}  // namespace
}  // namespace kolo::models
