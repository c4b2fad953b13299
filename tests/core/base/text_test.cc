#include <kolo/core/base/text.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <kolo/core/base/error.h>
#include <tests/support/comma_locale.h>

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

TEST(ExactText, KeepsAllBits) {
  const double tiny = std::numeric_limits<double>::denorm_min(), inf = HUGE_VAL;
  const std::vector<double> numbers = {0.1, -1.0 / 3, 0, -0.0, tiny, 1.7976931348623157e308, inf, -inf};
  const std::vector<double> read = parse_exact(exact_text(numbers));
  EXPECT_EQ(read, numbers);
  EXPECT_TRUE(std::signbit(read[3]));
  EXPECT_TRUE(std::isnan(parse_exact(exact_text({std::nan("")})).at(0)));
  EXPECT_TRUE(parse_exact(exact_text({})).empty());
}

TEST(ExactText, ReadsWhatPrintfWroteInTheCLocale) {
  EXPECT_EQ(parse_exact("0x1.8p-1 -0x1p+0"), (std::vector<double>{0.75, -1}));
  for (const char* text : {"0x1,8p-1", "1.8p-1x", "--1", "word"})
    EXPECT_THROW(parse_exact(text), DataLossError);
}

// A training that a German desktop began, and a batch job goes on with.
TEST(ExactText, IsTheSameInALocaleWithAComma) {
  const std::vector<double> numbers = {0.75, -1.5, 1e-300};
  const std::string in_c = exact_text(numbers);
  const CommaLocale german;
  if (!german.is_set()) GTEST_SKIP() << "no localedef here";
  EXPECT_EQ(exact_text(numbers), in_c);
  EXPECT_EQ(parse_exact(in_c), numbers);
  EXPECT_EQ(parse_double("0.75"), 0.75);
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

TEST(NearestName, FindsALetterTooManyTooFewOrWrong) {
  EXPECT_EQ(nearest_name("addam", {"sgd", "adam", "adagrad"}), "adam");
  EXPECT_EQ(nearest_name("adm", {"sgd", "adam", "adagrad"}), "adam");
  EXPECT_EQ(nearest_name("sdd", {"sgd", "adam", "adagrad"}), "sgd");
}

TEST(NearestName, BeginsWithTheWordWhereOneDoes) {
  EXPECT_EQ(nearest_name("resnet", {"lenet", "resnet20", "resnet50"}), "resnet20");
  EXPECT_EQ(nearest_name("Checkpoint", {"checkpoints", "checkpoint-dir"}), "checkpoints");
  EXPECT_EQ(nearest_name("res", {"gpt", "resnet20"}), "resnet20");
  EXPECT_EQ(nearest_name("a", {"b", "adagrad"}), "");
}

TEST(NearestName, IsTheFirstOfEquallyNear) { EXPECT_EQ(nearest_name("bat", {"cat", "hat"}), "cat"); }

TEST(NearestName, CountsCaseAsHalfADifference) {
  // "MatMul": "matmul" differs in two cases (one letter's worth), "MatMax" in two letters.
  EXPECT_EQ(nearest_name("MatMul", {"MatMax", "matmul"}), "matmul");
  EXPECT_EQ(nearest_name("AB", {"ab"}), "ab");
}

TEST(NearestName, MayDifferInHalfOfTheLettersButNotInMore) {
  EXPECT_EQ(nearest_name("abxx", {"abcd"}), "abcd");
  EXPECT_EQ(nearest_name("axxx", {"abcd"}), "");
}

TEST(NearestName, OfNothingOrAmongNothingIsNothing) {
  EXPECT_EQ(nearest_name("", {"sgd"}), "");
  EXPECT_EQ(nearest_name("sgd", {}), "");
}

TEST(DidYouMean, EndsAMessageOnlyWhereANameIsNear) {
  EXPECT_EQ(did_you_mean("Adam", {"adam"}), "; did you mean \"adam\"?");
  EXPECT_EQ(did_you_mean("lenet", {"mlp"}), "");
}

TEST(MessageOf, IsWhatTheExceptionSays) {
  EXPECT_EQ(message_of(std::make_exception_ptr(std::runtime_error("no more digits"))), "no more digits");
}

TEST(MessageOf, OfSomethingElseSaysSo) {
  EXPECT_EQ(message_of(std::make_exception_ptr(7)), "an exception that is no std::exception");
}

TEST(LowerCase, TakesAsciisCapitalsAlone) { EXPECT_EQ(lower_case("GPU_0: \xC4rA[Z]"), "gpu_0: \xC4ra[z]"); }

}  // namespace
}  // namespace kolo
