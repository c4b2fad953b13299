#include <kolo/models/csv.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include <kolo/core/base/error.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Csv : public testing::Test {
 protected:
  CsvTable read(const std::string& text) {
    std::ofstream(folder_ / "t.csv", std::ios::binary) << text;
    return read_csv(folder_ / "t.csv");
  }
  void refuse(const std::string& text, const std::string& why) {
    SCOPED_TRACE(text);
    EXPECT_THAT([&] { read(text); },
                ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("t.csv"), HasSubstr(why))));
  }
  TemporaryDirectory folder_;
};

TEST_F(Csv, TakesTheLastColumnAsTheLabel) {
  const CsvTable table = read("0.5,-1e3,2\n+7, .25 ,0\n");
  EXPECT_EQ(table.x.shape(), (Shape{2, 2}));
  EXPECT_THAT(table.x.span<float>(), ElementsAre(0.5F, -1000, 7, 0.25F));
  EXPECT_THAT(table.y.span<std::int32_t>(), ElementsAre(2, 0));
}

TEST_F(Csv, TakesTheColumnThatIsCalledLabel) {
  const CsvTable table = read("label,a,b\n1,2,3\n4,5,6\n");
  EXPECT_THAT(table.y.span<std::int32_t>(), ElementsAre(1, 4));
  EXPECT_THAT(table.x.span<float>(), ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(read("0,1,label\n7,8,9\n").y.span<std::int32_t>(), ElementsAre(9));
  EXPECT_THAT(read("a,b\n7,8\n").y.span<std::int32_t>(), ElementsAre(8));
}

TEST_F(Csv, TakesTheUsualNamesOfLabelsAndSaysWhichColumnItTook) {
  CsvTable table = read("Label,a,b\n1,2,3\n4,5,6\n");
  EXPECT_THAT(table.y.span<std::int32_t>(), ElementsAre(1, 4));
  EXPECT_EQ(table.note, "label: column 1 \"Label\"");
  EXPECT_EQ(read("a,Species,b\n1,2,3\n").note, "label: column 2 \"Species\"");
  EXPECT_EQ(read("class,label\n1,2\n").note, "label: column 2 \"label\"");
  EXPECT_EQ(read("a,b\n1,2\n").note, "label: column 2 \"b\"");
  EXPECT_EQ(read("5,2\n").note, "label: column 2");
}

TEST_F(Csv, TakesPandasNumbersForNamesAndLeavesItsIndexOut) {
  CsvTable table = read("0,1,2\n.5,7,1\n");
  EXPECT_EQ(table.x.shape(), (Shape{1, 2}));
  EXPECT_EQ(table.note, "label: column 3 \"2\"");
  EXPECT_EQ(read("0,1\n").x.shape(), (Shape{1, 1}));  // two numbers may be a sample
  table = read(",a,label\n17,2,1\n4,5,0\n");
  EXPECT_THAT(table.x.span<float>(), ElementsAre(2, 5));
  EXPECT_EQ(table.note, "label: column 3 \"label\", left out: column 1, which has no name");
}

TEST_F(Csv, TakesQuotesLineEndsOfWindowsEmptyLinesAndAMissingLastLineEnd) {
  const CsvTable table = read("\xef\xbb\xbf\"a\",\"label\"\r\n\r\n\"1.5\",3\r\n  \n2.5,\"4\"");
  EXPECT_THAT(table.x.span<float>(), ElementsAre(1.5F, 2.5F));
  EXPECT_THAT(table.y.span<std::int32_t>(), ElementsAre(3, 4));
}

TEST_F(Csv, TakesCommasWithinQuotesAsPartOfAName) {
  EXPECT_THAT(read("\"height, cm\",class\n1,2\n").x.span<float>(), ElementsAre(1));
}

TEST_F(Csv, TakesWhatIsTooSmallForDoublesAsZero) {
  EXPECT_THAT(read("1e-400,1\n-1e-320,0\n").x.span<float>(), ElementsAre(0, 0));
  refuse("1e400,1\n", "no number that f32 holds");
}

TEST_F(Csv, NamesTheLineWithAnotherNumberOfColumns) {
  refuse("1,2,3\n\n1,2\n", "line 3: 2 columns; the first line has 3");
  refuse("1,2,3\n1,2,3,4\n", "line 2: 4 columns");
}

TEST_F(Csv, NamesTheFieldThatIsNoNumber) {
  refuse("1,2,3\n1,x,3\n", "line 2, column 2: \"x\"");
  for (const char* field : {"", "nan", "inf", "1e39", "0x1p3", "1.5.", "1 2", "--1", "\"1"})
    refuse(std::string("1,2\n") + field + ",3\n", "line 2, column 1");
}

TEST_F(Csv, NamesTheLabelThatIsNone) {
  for (const char* label : {"-1", "1.5", "3e9"})
    refuse(std::string("1,2\n3,") + label + "\n", "line 2, column 2: label");
}

TEST_F(Csv, RefusesTablesWithoutSamplesOrColumns) {
  refuse("", "no samples");
  refuse("\n \n", "no samples");
  refuse("a,label\n", "no samples");
  refuse("1\n2\n", "line 1: one column");
  EXPECT_THROW(read_csv(folder_ / "none.csv"), NotFoundError);
}

}  // namespace
}  // namespace kolo::models
