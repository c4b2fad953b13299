#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <kolo/core/base/parse_number.h>

namespace kolo {
namespace {

TEST(ParseInt64, ReadsTheWholeRange) {
  EXPECT_EQ(parse_int64("0"), 0);
  EXPECT_EQ(parse_int64("007"), 7);
  EXPECT_EQ(parse_int64("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_int64("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
}

TEST(ParseInt64, IsNothingUnlessTheWholeTextIsANumber) {
  for (const char* text : {"", "-", "--1", "+1", "1x", "x1", " 1", "1 ", "1.0", "1e3", "0x10"})
    EXPECT_EQ(parse_int64(text), std::nullopt) << text;
}

TEST(ParseInt64, IsNothingBeyondSixtyFourBits) {
  EXPECT_EQ(parse_int64("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_int64("-9223372036854775809"), std::nullopt);
}

TEST(ParseDouble, ReadsFixedAndScientificNotation) {
  EXPECT_EQ(parse_double("0.001"), 0.001);
  EXPECT_EQ(parse_double("1e-3"), 0.001);
  EXPECT_EQ(parse_double("-2.5E2"), -250.0);
  EXPECT_EQ(parse_double("3"), 3.0);
}

TEST(ParseDouble, KeepsTheSignOfZero) {
  const auto zero = parse_double("-0");
  ASSERT_TRUE(zero.has_value());
  EXPECT_TRUE(std::signbit(*zero));
}

TEST(ParseDouble, IsNothingForWhatIsNotFinite) {
  for (const char* text : {"nan", "-nan", "NAN", "inf", "-inf", "infinity", "1e999", "-1e999"})
    EXPECT_EQ(parse_double(text), std::nullopt) << text;
}

TEST(ParseDouble, IsNothingUnlessTheWholeTextIsANumber) {
  for (const char* text : {"", ".", "-", "+1", "1x", " 1", "1 ", "1,5", "1e", "0x1p3"})
    EXPECT_EQ(parse_double(text), std::nullopt) << text;
}

}  // namespace
}  // namespace kolo
