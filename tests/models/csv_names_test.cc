// Columns of a table that have the same name.
#include <kolo/models/data.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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

// Answers of yes and no are written y and n.
TEST_F(CsvNames, AreNoneWhereTheLabelsNameStandsBesideNumbersOfASample) {
  const CsvTable table = read("0.5,7,y,far\n-0.5,2,n,near\n3,4,y,far\n");
  EXPECT_THAT(table.x.span<float>(), ElementsAre(0.5F, 7, 0, 1, -0.5F, 2, 1, 0, 3, 4, 0, 1));
  EXPECT_THAT(table.schema->labels[0].words, ElementsAre("far", "near"));
  EXPECT_THAT(read("3,7,y,far\n3,2,n,near\n").lines, ElementsAre(1, 2));
  EXPECT_THAT(read("7,7,class,far\n3,2,b,near\n").lines, ElementsAre(1, 2));
  const CsvOptions known{.known = read("0.5,n,far\n1,y,near\n2,n,far\n").schema};
  EXPECT_THAT(read("3,y,far\n2,n,near\n", known).lines, ElementsAre(1, 2));
  for (const char* names : {"0,1,2,y", "y,1,2,3", "2019,2021,5,label", "a,b,c,y"})
    EXPECT_THAT(read(std::string(names) + "\n0,1,2,1\n1,3,4,0\n").lines, ElementsAre(2, 3)) << names;
}

TEST_F(CsvNames, ThatAreCellsTooAreWarnedOf) {
  EXPECT_THAT(
      read("red,z\nblue,q\nred,q\nblue,p\n").warnings,
      ElementsAre(testing::HasSubstr("the first line is taken for the columns' names, although \"red\" "
                                     "stands in line 3 of that column, too")));
  EXPECT_THAT(read("colour,kind\nblue,q\nred,q\nblue,p\n").warnings, testing::IsEmpty());
  EXPECT_THAT(read("amount,fraud\n1,ok\n2,fraud\n3,ok\n").warnings, testing::IsEmpty());
}

TEST_F(CsvNames, AreNoneWhereMostOfThemAreCellsOfTheirColumns) {
  const CsvTable table = read("n,y,dem\ny,n,rep\nn,n,dem\ny,y,rep\n");
  EXPECT_THAT(table.lines, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(table.schema->labels[0].words, ElementsAre("dem", "rep"));
  EXPECT_THAT(
      table.note,
      testing::HasSubstr("the first line is read as a row, because most of its words also occur below it"));
  EXPECT_THAT(table.warnings, testing::IsEmpty());
  const CsvOptions known{.known = table.schema};
  EXPECT_THAT(read("y,n,dem\nn,y,rep\ny,n,rep\n", known).lines, ElementsAre(1, 2, 3));
  // Answers that are written as their columns are called.
  EXPECT_THAT(read("Email,Phone,Post,label\nEmail,No,Post,yes\nNo,Phone,No,no\nEmail,Phone,No,yes\n").lines,
              ElementsAre(2, 3, 4));
  EXPECT_THAT(read("Email,Phone,Post,sold\nEmail,No,Post,yes\nNo,Phone,No,no\nEmail,Phone,No,yes\n").lines,
              ElementsAre(2, 3, 4));
  // Which column is the label, and which are none, options tell by their numbers.
  const char* const with_dates =
      "good,red,oak,01-01\nbad,green,fir,01-02\ngood,red,oak,01-03\nbad,red,fir,01-04\n";
  EXPECT_THAT(read(with_dates, {.target = "1", .ignore = {"4"}}).lines, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(read(with_dates, {.target = "1"}).lines, ElementsAre(1, 2, 3, 4));
  // Joined files, each with its names; a word that is also a name; names that --target asks for.
  EXPECT_THAT(read("a,b,label\nu,v,x\na,b,label\nv,u,x\n").lines, ElementsAre(2, 3, 4));
  EXPECT_THAT(read("n,class\nclass,p\nn,q\nm,q\n").lines, ElementsAre(2, 3, 4));
  EXPECT_THAT(read("n,y\ny,n\nn,y\nn,n\ny,y\n", {.target = "y"}).lines, ElementsAre(2, 3, 4, 5));
}

TEST_F(CsvNames, TakesTheNameOfAKnownColumnForNoNumberOfOne) {
  refuse("label,b,c\n0,1,7\n", "there is no column \"2\"", {.known = read("b,2,label\n.5,7,1\n").schema});
}

}  // namespace
}  // namespace kolo::models
