// Columns of a table that have the same name.
#include <kolo/models/data.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/csv_reader.h"

namespace kolo::models {
namespace {

using testing::ElementsAre;

class CsvNames : public CsvReader {};

TEST_F(CsvNames, RefusesTwoColumnsOfOneName) {
  refuse("x,x,label\n1,2,0\n3,4,1\n",
         "columns 1 and 2 are both called \"x\"; rename one, or leave one out by its number, as --ignore 2");
  refuse("label,x,label\n0,2,0\n1,4,1\n", "columns 1 and 3 are both called \"label\"");
  refuse("Label,x,label\n0,2,0\n1,4,1\n", "columns 1 and 3 are called \"Label\" and \"label\"");
  refuse("a,,,label\n0,2,0,1\n1,4,1,0\n", "columns 2 and 3 have no name");
  refuse("x,x,label\n1,2,0\n3,4,1\n", "rename one, or give --ignore its column's number", {.ignore = {"x"}});
  EXPECT_THAT(read("T,t,label\n1,2,0\n3,4,1\n").x.span<float>(), ElementsAre(1, 2, 3, 4));
}

TEST_F(CsvNames, TakesOneOfTwoColumnsOfOneNameWhereTheOtherIsLeftOut) {
  const CsvTable table = read("x,x,label\n1,2,0\n3,4,1\n", {.ignore = {"1"}});
  EXPECT_THAT(table.x.span<float>(), ElementsAre(2, 4));
  const CsvOptions known{.known = table.schema};
  EXPECT_THAT(read("x,x,label\n5,6,0\n", known).x.span<float>(), ElementsAre(6));
  EXPECT_THAT(read("label,x\n0,7\n", known).x.span<float>(), ElementsAre(7));
  refuse("label,x,y,x\n0,7,8,9\n", "columns 2 and 4 are both called \"x\"",
         {.known = read("x,label\n1,0\n").schema});
}

TEST_F(CsvNames, TakesTheNameOfAKnownColumnForNoNumberOfOne) {
  refuse("label,b,c\n0,1,7\n", "there is no column \"2\"", {.known = read("b,2,label\n.5,7,1\n").schema});
}

}  // namespace
}  // namespace kolo::models
