// Numbers of a table as people in different countries write them, and columns that are no good for a model.
#include <kolo/models/data.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/models/csv_reader.h"

namespace kolo::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsEmpty;

class CsvNumbers : public CsvReader {};

TEST_F(CsvNumbers, MayHavePointsOfThousandsAndDecimalCommas) {
  const CsvTable table = read("a;b;label\n1.100,50;7;0\n950,25;8;1\n-1.234.567;9;0\n");
  EXPECT_THAT(table.x.span<float>(), ElementsAre(1100.5F, 7, 950.25F, 8, -1234567, 9));
  EXPECT_THAT(table.note, HasSubstr("points of thousands in column 1 \"a\""));
  EXPECT_THAT(read("1.100,50;7;0\n2.000,00;8;1\n").x.span<float>(), ElementsAre(1100.5F, 7, 2000, 8))
      << "a first line of numbers holds no names";
}

TEST_F(CsvNumbers, OfAColumnMeanTheSameByTheirPoints) {
  const CsvTable table = read("a;b;label\n1.100;1.100;0\n2.500,75;2.500;1\n12,5;3.5;0\n", {});
  EXPECT_THAT(table.x.span<float>(), ElementsAre(1100, 1.1F, 2500.75F, 2.5F, 12.5F, 3.5F));
  EXPECT_THAT(table.schema->features[0].mean, FloatNear((1100 + 2500.75F + 12.5F) / 3, 1e-3F));
  // Labels too, and later tables by what the first one has shown.
  const CsvTable priced = read("a;price\n1;1.100\n2;1.200,50\n");
  EXPECT_THAT(priced.y.span<float>(), ElementsAre(1100, 1200.5F));
  const auto kept = std::make_shared<const TableSchema>(table_schema_from_json(to_json(*table.schema)));
  EXPECT_THAT(read("a;b;label\n3.000;3.000;1\n", {.known = kept}).x.span<float>(), ElementsAre(3000, 3));
}

TEST_F(CsvNumbers, WhosePointsAreUnclearAreRefused) {
  refuse("a;label\n1.100;0\n12,5;1\n",
         "line 2, column 1: \"1.100\": a point may be a decimal one or of thousands");
  refuse("a;label\n1.100,50;0\n12.5;1\n3;1\n",
         "line 2, column 1: \"1.100,50\": it has points of thousands, and other numbers of the column have "
         "decimal "
         "points, as \"12.5\" in line 3");
  refuse("a;label\n1.100,50;0\n1.100,50;0\n12.5;1\n3;1\n",
         "line 4, column 1: \"12.5\": it has a decimal point");
  EXPECT_THAT(read("a;label\n1.100;0\n12.5;1\n").x.span<float>(), ElementsAre(1.1F, 12.5F));
  EXPECT_THAT(read("a;label\n1.100;0\n0.125;1\n2,5;1\n").x.span<float>(), ElementsAre(1.1F, 0.125F, 2.5F));
}

TEST_F(CsvNumbers, WithPointsBeforeThreeDigitsAreUnclearBesideDecimalCommasOfOtherColumns) {
  refuse("a;b;label\n9.275;1,5;0\n8.100;2,5;1\n",
         "line 2, column 1: \"9.275\": a point may be a decimal one or of thousands, and other columns have "
         "decimal commas; write the column without points");
  refuse("a\tb\tlabel\n317\t1,5\t0\n1.533\t2,5\t1\n", "line 3, column 1: \"1.533\"");
  refuse("a;b;label\n9.275;1.234.567;0\n", "line 2, column 1: \"9.275\"");
  refuse("a,b,label\n9.275,\"1,5\",0\n", "line 2, column 1: \"9.275\"");
  refuse("a;price\n1,5;9.275\n2,5;8.100\n", "line 2, column 2: \"9.275\"");
  refuse("a;b;label\n9.275;1,5;0\n8.100;2,5;1\n", "line 2, column 1: \"9.275\"", {.ignore = {"b"}});
  // One number tells of its column, and without decimal commas they are decimal points.
  EXPECT_THAT(read("a;b;label\n9.275;1,5;0\n0.5;2,5;1\n").x.span<float>(),
              ElementsAre(9.275F, 1.5F, 0.5F, 2.5F));
  EXPECT_THAT(read("a;b;label\n9.275;1;0\n1.533;2;1\n").x.span<float>(), ElementsAre(9.275F, 1, 1.533F, 2));
  EXPECT_THAT(read("a;b;label\n9.275;red;0\n1.533;1,5;1\n8.100;blue;1\n").x.shape(), (Shape{3, 4}));
}

// By what the training has said of a column, not by the other rows of the later table.
TEST_F(CsvNumbers, OfALaterTableMeanWhatThoseOfTheTrainingMean) {
  const auto known = [&](const std::string& text) {
    return CsvOptions{
        .known = std::make_shared<const TableSchema>(table_schema_from_json(to_json(*read(text).schema)))};
  };
  const CsvOptions points = known("a;b;label\n9.275;1;0\n1.533;2;1\n");
  EXPECT_THAT(read("a;b;label\n9.275;1;0\n", points).x.span<float>(), ElementsAre(9.275F, 1));
  refuse("a;b;label\n9.275;1;0\n1.100,50;1;0\n",
         "line 3, column 1: \"1.100,50\": the training's numbers of this column have decimal points", points);
  refuse("a;b;label\n9.275;1,5;0\n", "line 2, column 1: \"9.275\": a point may be", points);
  EXPECT_THAT(read("a,b,label\n9.275,1,0\n", points).x.span<float>(), ElementsAre(9.275F, 1));
  const CsvOptions thousands = known("a;b;label\n9.275,5;1;0\n1.533;2;1\n");
  EXPECT_THAT(read("a;b;label\n9.275;1;0\n", thousands).x.span<float>(), ElementsAre(9275, 1));
  refuse("a;b;label\n9.275;1;0\n1.5;1;0\n", "line 3, column 1: \"1.5\": the training's", thousands);
  refuse("a,b,label\n9.275,1,0\n", "line 2, column 1: \"9.275\": the training's", thousands);
  const CsvOptions none = known("a;b;label\n9;1,5;0\n1;2;1\n");
  EXPECT_THAT(read("a;b;label\n1.100,5;1;0\n", none).x.span<float>(), ElementsAre(1100.5F, 1));
  refuse("a;b;label\n9.275;1;0\n12.5;1;0\n", "line 2, column 1: \"9.275\": a point may be", none);
  const CsvOptions commas = known("a,b,label\n\"9,5\",1,0\n");
  EXPECT_THAT(read("a,b,label\n\"9,275\",1,0\n", commas).x.span<float>(), ElementsAre(9.275F, 1));
  refuse("a,b,label\n9.275,1,0\n", "line 2, column 1: \"9.275\": the training's", commas);
}

TEST_F(CsvNumbers, MayHaveCommasOfThousands) {
  const std::string text =
      "a,b,price\n\"21,493.02\",7,\"1,234,567\"\n950.25,8,\"2,500\"\n\"-1,234\",\"1,5\",950\n";
  const CsvTable table = read(text, {.label_kind = LabelKind::numbers});
  EXPECT_THAT(table.x.span<float>(), ElementsAre(21493.02F, 7, 950.25F, 8, -1234, 1.5F));
  EXPECT_THAT(table.y.span<float>(), ElementsAre(1234567, 2500, 950));
  EXPECT_THAT(
      table.note,
      HasSubstr("decimal commas in column 2 \"b\", commas of thousands in columns 1 \"a\", 3 \"price\""));
  EXPECT_THAT(table.schema->features[0].mean, FloatNear((21493.02F + 950.25F - 1234) / 3, 1e-2F));
  EXPECT_THAT(read("\"1,100.50\",\"2,000.00\"\n\"2,000.00\",\"1,000.00\"\n").x.span<float>(),
              ElementsAre(1100.5F, 2000))
      << "a first line of numbers holds no names";
  for (const char* between : {";", "\t"}) {
    const CsvTable other = read(fmt::format("a{0}label\n21,493.02{0}0\n1,234{0}1\n0.5{0}1\n", between));
    EXPECT_THAT(other.x.span<float>(), ElementsAre(21493.02F, 1234, 0.5F));
    EXPECT_THAT(other.note, AllOf(HasSubstr(", commas of thousands in column 1"),
                                  testing::Not(HasSubstr("decimal commas"))));
  }
}

// A spreadsheet quotes the numbers that have a comma, and no others.
TEST_F(CsvNumbers, BesideNumbersWithPointsHaveCommasOfThousands) {
  const CsvTable table = read("a,b,price\n950.25,1,\"2,500\"\n\"1,234\",2,99.95\n9.275,3,\"-1,000\"\n");
  EXPECT_THAT(table.x.span<float>(), ElementsAre(950.25F, 1, 1234, 2, 9.275F, 3));
  EXPECT_THAT(table.y.span<float>(), ElementsAre(2500, 99.95F, -1000));
  EXPECT_THAT(table.note, HasSubstr("commas of thousands in columns 1 \"a\", 3 \"price\""));
  EXPECT_THAT(table.schema->features[0].mean, FloatNear((950.25F + 1234 + 9.275F) / 3, 1e-2F));
  const auto kept = std::make_shared<const TableSchema>(table_schema_from_json(to_json(*table.schema)));
  EXPECT_THAT(read("a,b,price\n\"3,000\",1,\"2,500\"\n", {.known = kept}).x.span<float>(),
              ElementsAre(3000, 1));
  refuse("a,b,price\n\"0,5\",1,1\n", "line 2, column 1: \"0,5\": the training's numbers", {.known = kept});
  const CsvTable tabs = read("a\tlabel\n950.25\t0\n\"1,234\"\t1\n");
  EXPECT_THAT(tabs.x.span<float>(), ElementsAre(950.25F, 1234));
  EXPECT_THAT(tabs.note, testing::Not(HasSubstr("decimal commas")));
}

TEST_F(CsvNumbers, BesideNumbersWithPointsAreRefusedWhereSomethingSaysOtherwise) {
  const std::string unclear = "\"1,234\": a comma may be a decimal one or of thousands";
  refuse("a,label\n9.275,0\n\"1,234\",1\n", "line 3, column 1: " + unclear);
  for (const char* text :
       {"a,b,label\n950.25,\"1,5\",0\n\"1,234\",\"2,5\",1\n", "a\tb\tlabel\n950.25\t1,5\t0\n1,234\t2,5\t1\n"})
    refuse(text, "line 3, column 1: " + unclear +
                     ", and \"950.25\" in line 2 would make it one of thousands, while other columns have "
                     "decimal commas, which would make it a decimal one; write the number with a point");
  refuse("a;label\n950.25;0\n1,234;1\n",
         "line 3, column 1: " + unclear +
             ", and \"950.25\" in line 2 would make it one of thousands, while semicolons between the fields "
             "make it a decimal one");
  refuse("a,label\n950.25,0\n\"1,234\",1\n\"0,5\",1\n",
         "line 4, column 1: \"0,5\": it has a decimal comma, and other numbers of the column have decimal "
         "points, as \"950.25\" in line 2");
}

TEST_F(CsvNumbers, WhoseCommasAreUnclearOrUnlikeAreRefused) {
  const std::string unclear =
      "\"1,234\": a comma may be a decimal one or of thousands; write the number with a point";
  refuse("a,label\n\"1,234\",0\n\"5,678\",1\n", "line 2, column 1: " + unclear);
  refuse("a,label\n950,0\n\"1,234\",1\n", "line 3, column 1: " + unclear);
  refuse("a\tlabel\n1,234\t0\n950\t1\n", "line 2, column 1: " + unclear);
  EXPECT_THAT(read("a\tb\tlabel\n1,234\t7,5\t0\n950\t8\t1\n").x.span<float>(),
              ElementsAre(1.234F, 7.5F, 950, 8));
  EXPECT_THAT(read("a;label\n1,234;0\n950;1\n").x.span<float>(), ElementsAre(1.234F, 950));
  refuse("a,label\n\"1,234.5\",0\n\"2,345.5\",1\n\"0,5\",1\n",
         "line 4, column 1: \"0,5\": it has a decimal comma, and other numbers of the column have commas of "
         "thousands, as \"1,234.5\" in line 2");
  refuse("a;label\n1,234.5;0\n2.345,5;1\n2.345,5;1\n",
         "line 2, column 1: \"1,234.5\": it has commas of thousands");
  refuse("a,label\n\"1,234.5\",0\n\"2,345.5\",1\n7,1\n8,0\n9,1\n7,1\n8,0\n9,1\n7,1\nabout 5,0\n",
         "line 11, column 1: \"about 5\" is no number");
}

TEST_F(CsvNumbers, WithCommasOfALaterTableMeanWhatThoseOfTheTrainingMean) {
  const auto known = [&](const std::string& text) {
    return CsvOptions{
        .known = std::make_shared<const TableSchema>(table_schema_from_json(to_json(*read(text).schema)))};
  };
  const CsvOptions thousands = known("a,b,label\n\"1,234.5\",1,0\n950,2,1\n");
  EXPECT_THAT(read("a,b,label\n\"3,000\",1,0\n1.234,1,0\n", thousands).x.span<float>(),
              ElementsAre(3000, 1, 1.234F, 1));
  EXPECT_THAT(read("a;b;label\n3,000;1,5;0\n", thousands).x.span<float>(), ElementsAre(3000, 1.5F));
  refuse("a,b,label\n\"3,5\",1,0\n",
         "line 2, column 1: \"3,5\": the training's numbers of this column have commas of thousands",
         thousands);
  refuse("a;b;label\n3.000,5;1;0\n", "line 2, column 1: \"3.000,5\": the training's", thousands);
  const CsvOptions none = known("a,b,label\n9.5,1,0\n8,2,1\n");
  EXPECT_THAT(read("a,b,label\n\"1,234.5\",1,0\n", none).x.span<float>(), ElementsAre(1234.5F, 1));
  for (const char* text : {"a,b,label\n\"1,234.5\",1,0\n\"1,234\",1,0\n", "a,b,label\n9,1,0\n\"1,234\",1,0\n",
                           "a;b;label\n1;1;0\n1,234;1;0\n"})
    refuse(text, "line 3, column 1: \"1,234\": a comma may be a decimal one or of thousands", none);
  const CsvOptions commas = known("a,b,label\n\"9,5\",1,0\n");
  refuse("a,b,label\n\"1,234.5\",1,0\n",
         "line 2, column 1: \"1,234.5\": the training's numbers of this column have decimal commas", commas);
  EXPECT_THAT(read("a;b;label\n1,234;1;0\n", known("a;b;label\n1,5;1;0\n2;2;1\n")).x.span<float>(),
              ElementsAre(1.234F, 1));
}

TEST_F(CsvNumbers, OfWhichAFewAreOthersMakeNoColumnOfWords) {
  const std::string many = [] {
    std::string text = "a,label\n";
    for (int i = 0; i < 30; ++i) text += fmt::format("\"{},5\",{}\n", i, i % 2);
    return text;
  }();
  refuse(many + "0.5,1\n",
         "line 32, column 1: \"0.5\": it has a decimal point, and other numbers of the column have decimal "
         "commas",
         {});
  refuse(many + "about 7,1\n", "line 32, column 1: \"about 7\" is no number", {});
}

std::string rows(int count, const std::string& format) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format(fmt::runtime(format), i, i % 2, i % 7);
  return text;
}

TEST_F(CsvNumbers, ThatAreTakenAsWordsAreWarnedOf) {
  EXPECT_THAT(read("id,a,label\n" + rows(30, "n{0},{2},{1}\n")).warnings,
              ElementsAre(AllOf(HasSubstr("column 1 \"id\""),
                                HasSubstr("30 different ones in 30 rows, such as \"n0\" in line 2, of which"),
                                HasSubstr("--ignore id leaves it out"))));
  EXPECT_THAT(read("price,label\n" + rows(30, "{0}.5 €,{1}\n")).warnings,
              ElementsAre(HasSubstr("may be meant as numbers, such as \"0.5 €\", which kolo cannot read")));
  EXPECT_THAT(read("a,name\n" + rows(30, "{2},n{0}\n")).warnings,
              ElementsAre(AllOf(HasSubstr("the label, column 2 \"name\", has 30 classes in 30 rows"),
                                HasSubstr("--target names another column"))));
  EXPECT_THAT(
      read("a,price\n" + rows(30, "{2},{0} €\n")).warnings,
      ElementsAre(AllOf(HasSubstr("has 30 classes"), HasSubstr("such as \"0 €\", which kolo cannot read"))));
  EXPECT_THAT(read("price,label\n" + rows(30, "\"1.0{0:02},5\",{1}\n") + rows(10, "n/k,{1}\n")).warnings,
              ElementsAre(HasSubstr("(some are numbers, such as \"1.000,5\", and \"n/k\" is none)")));
  EXPECT_THAT(read("colour,label\n" + rows(30, "c{2},{1}\n")).warnings, IsEmpty());
}

TEST_F(CsvNumbers, InAColumnOfFewWordsAreWarnedOf) {
  for (const char* word : {"1{2}%", "1'00{2}", "1_00{2}", "1\u00a000{2}", "\u22121{2}", "(1{2})", "€ 1{2}"})
    EXPECT_THAT(read("price,label\n" + rows(30, word + std::string(",{1}\n"))).warnings,
                ElementsAre(AllOf(HasSubstr("column 1 \"price\" is one of words, such as"),
                                  HasSubstr("which kolo cannot read"))))
        << word;
  for (const char* word : {"size {2}", "1{2}-2{2}", "v1.{2}"})
    EXPECT_THAT(read("a,label\n" + rows(30, word + std::string(",{1}\n"))).warnings, IsEmpty()) << word;
}

TEST_F(CsvNumbers, ThatF32CannotTellApartAreWarnedOf) {
  EXPECT_THAT(read("a,t\n" + rows(30, "{2},170{0:02}{2}\n"), {.label_kind = LabelKind::numbers}).warnings,
              IsEmpty());
  EXPECT_THAT(
      read("a,t\n" + rows(30, "{2},17000000{2}{1}.5\n")).warnings,
      ElementsAre(AllOf(HasSubstr("column 2 \"t\": its numbers differ by at most 61, and f32"),
                        HasSubstr("rounds them by up to 61.5"), HasSubstr("subtract the least one"))));
  EXPECT_THAT(read("id,label\n" + rows(30, "101677721{2},{1}\n")).warnings,
              ElementsAre(HasSubstr("column 1 \"id\": its numbers differ by at most 6, and f32")));
}

TEST_F(CsvNumbers, ThatNumberTheRowsAreWarnedOf) {
  EXPECT_THAT(
      read("id,a,label\n" + rows(30, "{0},{2},{1}\n")).warnings,
      ElementsAre(
          "column 1 \"id\" rises by 1 from row to row; if it only numbers them, --ignore id leaves it "
          "out"));
  EXPECT_THAT(read("a;\"b,c\";label\n" + rows(30, "{2};1{0:02};{1}\n")).warnings,
              ElementsAre(AllOf(HasSubstr("column 2 \"b,c\" rises by 1"), HasSubstr("--ignore 2 leaves"))));
  EXPECT_THAT(
      read("a,b,n\n" + rows(30, "{2},{1},{0}\n"), {.label_kind = LabelKind::numbers}).warnings,
      ElementsAre("the label, column 3 \"n\", rises by 1 from row to row; if it only numbers them, --target "
                  "names another column, and then --ignore n leaves it out"));
  EXPECT_THAT(read("row no,a,label\n" + rows(30, "{0},{2},{1}\n")).warnings,
              ElementsAre(HasSubstr("--ignore 1 leaves it out")))
      << "as a shell takes it";
  const std::string some = rows(30, "{0},{2},{1}\n");
  for (const std::string& text :
       {"id,a,label\n" + some + "31,1,1\n", "id,a,label\n" + some + ",1,1\n",
        "id,a,label\n" + some + "30,1,1\n30,1,1\n", "id,a,label\n" + rows(19, "{0},{2},{1}\n"),
        "id,a,label\n" + rows(30, "{0}.5,{2},{1}\n"), "id,label\n" + rows(30, "{0},{1}\n")})
    EXPECT_THAT(read(text, {.missing = MissingCells::zero}).warnings, IsEmpty()) << text;
  const CsvTable first = read("id,a,label\n" + some);
  EXPECT_THAT(read("id,a,label\n" + some, {.known = first.schema}).warnings, IsEmpty()) << "it was told once";
}

TEST_F(CsvNumbers, AndWordsThatAreNotThereAreToldWithTheirPlace) {
  const CsvOptions known{
      .known = read("colour,size,label\nred,7,dog\nblue,8,cat\n", {.missing = MissingCells::mean}).schema};
  EXPECT_EQ(
      read("label,size,colour\ndog,1,red\ncat,,pink\ndog,2,pink\n", known).note,
      "2 of the unknown word \"pink\" (line 3, column 3), 1 empty cell: mean (such as line 3, column 2)");
}

}  // namespace
}  // namespace kolo::models
