#include <kolo/core/base/csv_line.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kolo {
namespace {

using testing::ElementsAre;

std::vector<std::string> words_of(std::string_view line, char separator = ',') {
  std::vector<std::string_view> fields = {"of the line before"};
  split_fields(line, separator, fields);
  std::vector<std::string> words;
  for (const std::string_view field : fields) words.push_back(unquoted(field));
  return words;
}

TEST(CsvLine, HasOneFieldMoreThanSeparators) {
  EXPECT_THAT(words_of(""), ElementsAre(""));
  EXPECT_THAT(words_of("a,,b,"), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(words_of("1,5;2,5", ';'), ElementsAre("1,5", "2,5"));
}

TEST(CsvLine, LeavesOutBlanksAroundFieldsAndInsideQuotes) {
  EXPECT_THAT(words_of(" a ,\tb c\t, \" d \""), ElementsAre("a", "b c", "d"));
}

TEST(CsvLine, KeepsSeparatorsAndQuotesThatStandInQuotes) {
  EXPECT_THAT(words_of(R"("a, b",c)"), ElementsAre("a, b", "c"));
  EXPECT_THAT(words_of(R"("a ""b""",c)"), ElementsAre(R"(a "b")", "c"));
}

TEST(CsvLine, TakesAQuoteThatNothingClosesForALetter) {
  EXPECT_THAT(words_of("\"a,b"), ElementsAre("\"a", "b"));
}

TEST(CsvLine, MakesABlankOfALineBreakInAField) {
  EXPECT_EQ(unquoted("height\nin cm"), "height in cm");
  EXPECT_EQ(unquoted("a\r\nb\rc"), "a b c");
}

TEST(CsvLine, FindsTheQuoteThatALaterLineCloses) {
  const auto npos = std::string_view::npos;
  EXPECT_EQ(open_quote("a,\"b", ","), 2u);
  EXPECT_EQ(open_quote("a, \"b \"\"", ","), 3u);
  EXPECT_EQ(open_quote("\"a, b\",\"c\"", ","), npos);
  EXPECT_EQ(open_quote("5\" pipe,2", ","), npos) << "a quote within a field begins nothing";
  EXPECT_EQ(open_quote("a;\"b", ","), npos);
  EXPECT_EQ(open_quote("a;\"b", ";,"), 2u);
  EXPECT_EQ(open_quote("", ","), npos);
  EXPECT_EQ(closing_quote("\"a\nb\",c", 0), 4u);
  EXPECT_EQ(closing_quote("\"a\"\"", 0), npos);
}

TEST(CsvLine, TakesNamesBetweenCommasAndThoseWithACommaInQuotes) {
  EXPECT_THAT(names_in("a, b ,,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names_in("\"height, cm\",b"), ElementsAre("height, cm", "b"));
  EXPECT_THAT(names_in(""), ElementsAre());
}

}  // namespace
}  // namespace kolo
