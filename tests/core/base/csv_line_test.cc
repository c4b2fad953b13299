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

}  // namespace
}  // namespace kolo
