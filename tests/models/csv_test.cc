#include <kolo/models/data.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>

#include "tests/models/csv_reader.h"

namespace kolo::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

class Csv : public CsvReader {};

TEST_F(Csv, TakesTheLastColumnAsTheLabel) {
  const CsvTable table = read("0.5,-1e3,2\n+7, .25 ,0\n");
  EXPECT_EQ(table.x.shape(), (Shape{2, 2}));
  EXPECT_THAT(table.x.span<float>(), ElementsAre(0.5F, -1000, 7, 0.25F));
  EXPECT_THAT(table.y.span<std::int32_t>(), ElementsAre(2, 0));
}

TEST_F(Csv, RefusesWhatIsNoUtf8) {
  EXPECT_EQ(read("Orl\xC3\xA9"
                 "ans,1\n\xF0\x9F\x98\x80,0\n")
                .schema->features.front()
                .words.size(),
            2u);
  refuse(
      "Paris,1\nOrl\xE9"
      "ans,0\n",
      "line 2: it is not UTF-8");
  for (const char* bytes :
       {"\xC0\xAF", "\xED\xA0\x80", "\xE0\x80\xAF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82"})
    refuse(std::string("a,1\nb,0\n\n") + bytes + ",0\n", "line 4: it is not UTF-8");
  refuse(std::string("\xFF\xFE"
                     "a\0,\0",
                     6),
         "it is UTF-16; save the table as UTF-8");
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
  EXPECT_EQ(table.note, "label: column 3 \"2\", names 0 to 2 in the first line");
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
  refuse("1,2,3\n1,2,3,4\n",
         "line 2: 4 columns; the first line has 3; a field with \",\" in it must be in quotes");
  refuse("1\t2\n1\t2\t3\n", "a field with a tab in it must be in quotes");
  refuse("1,2,3\n1,2\n", "the first line has 3; each must have as many");
}

TEST_F(Csv, SaysThatAColumnWithoutCellsCanBeLeftOut) {
  refuse("a,v,label,\n1,2,0,\n3,4,1,\n", "column 4 is empty; --ignore 4 leaves it out", {.target = "label"});
}

TEST_F(Csv, CountsColumnsThatAreLeftOut) {
  refuse("a,t,u\n1,2,0\n",
         "line 1: of 3 columns 2 are left out; there must be a label and at least one beside it",
         {.target = "t", .ignore = {"a", "u"}});
}

TEST_F(Csv, WarnsOfFewBarsInALabel) {
  std::string text = "a,label\n1,x|y\n";
  for (int i = 0; i < 20; ++i) text += i % 2 == 0 ? "1,far\n" : "2,near\n";
  EXPECT_THAT(
      read(text).warnings,
      ElementsAre(HasSubstr("the label, column 2 \"label\", has | in 1 of 21 cells, so that a sample has "
                            "several labels; --loss softmax takes each cell for a class")));
  EXPECT_THAT(read("a,label\n1,x|y\n2,x\n").warnings, testing::IsEmpty());
}

TEST_F(Csv, TellsCodesWithZerosInFrontApart) {
  EXPECT_THAT(read("a,label\n1,007\n2,07\n3,x\n4,y\n5,z\n").schema->labels[0].words,
              ElementsAre("007", "07", "x", "y", "z"));
  EXPECT_THAT(read("a,label\n1,1.0\n2,1\n3,x\n4,y\n5,z\n").schema->labels[0].words,
              ElementsAre("1", "x", "y", "z"));
}

TEST_F(CsvReader, TellsLabelsThatAreOneNumberAndMayBeTwoClasses) {
  EXPECT_THAT(read("a,label\n1,01\n2,1\n3,2\n").warnings,
              ElementsAre(HasSubstr("the label, column 2 \"label\": \"01\" and \"1\" are one class")));
  EXPECT_THAT(read("a,label\n1,1\n2,2\n3,\"01\"\n").warnings,
              ElementsAre(HasSubstr("\"1\" and \"01\" are one class")));
  EXPECT_THAT(read("a,label\n1,007\n2,2\n3,07\n").warnings,
              ElementsAre(HasSubstr("\"007\" and \"07\" are one class")));
  EXPECT_THAT(read("a,label\n1,01\n2,02\n3,10\n4,01\n").warnings, IsEmpty());  // written alike
  EXPECT_THAT(read("a,label\n1,1.0\n2,1\n3,2\n4,0\n5,0.0\n").warnings, IsEmpty());
  EXPECT_THAT(read("a,label\n1,01.5\n2,1.5\n3,2.25\n").warnings, IsEmpty());     // numbers to find
  EXPECT_THAT(read("a,label\n1,01\n2,1\n3,x\n4,y\n5,z\n").warnings, IsEmpty());  // words: two classes
}

TEST_F(Csv, SaysThatTheFirstLineAloneHoldsNames) {
  refuse("a,b,label\n",
         "there are no samples in it; its first line holds the columns' names, and none follows");
}

TEST_F(Csv, NamesTheFieldThatIsNoNumber) {
  refuse("1,2,3\n1,x,3\n", "line 2, column 2: \"x\"");
  for (const char* field : {"", "nan", "inf", "1e39", "0x1p3", "1.5.", "1 2", "--1", "\"1"})
    refuse(std::string("1,2\n") + field + ",3\n", "line 2, column 1");
}

TEST_F(Csv, NamesTheLabelThatIsNone) {
  for (const char* label : {"-1", "3e9"})
    refuse(std::string("1,2\n3,") + label + "\n", "line 2, column 2: label");
}

TEST_F(Csv, TakesALabelWithFractionsAsANumberToFind) {
  const CsvTable table = read("a,price\n1,2\n3,-4.5\n5,6\n");
  EXPECT_EQ(table.schema->label_kind, LabelKind::numbers);
  EXPECT_EQ(table.y.shape(), (Shape{3, 1}));
  EXPECT_THAT(table.y.span<float>(), ElementsAre(2, -4.5F, 6));
  EXPECT_EQ(table.note, "target: column 2 \"price\"");
  EXPECT_THAT(read("a,price\n1,7\n", {.known = table.schema}).y.span<float>(), ElementsAre(7));
  EXPECT_EQ(table_schema_from_json(to_json(*table.schema)).label_kind, LabelKind::numbers);
}

TEST_F(Csv, TakesSeveralTargetsAsNumbersToFind) {
  const CsvTable table = read("price,size,rooms,age\n100,1,7,3\n200,2,8,4.5\n", {.target = "price,4"});
  EXPECT_EQ(table.schema->label_kind, LabelKind::numbers);
  EXPECT_EQ(table.x.shape(), (Shape{2, 2}));
  EXPECT_THAT(table.x.span<float>(), ElementsAre(1, 7, 2, 8));
  EXPECT_EQ(table.y.shape(), (Shape{2, 2}));
  EXPECT_THAT(table.y.span<float>(), ElementsAre(100, 3, 200, 4.5F));
  EXPECT_EQ(table.note, "targets: columns 1 \"price\", 4 \"age\"");
  EXPECT_THAT(table.schema->output_names(), ElementsAre("price", "age"));
  const TableSchema kept = table_schema_from_json(to_json(*table.schema));
  EXPECT_THAT(kept.output_names(), ElementsAre("price", "age"));
  EXPECT_EQ(kept.outputs(), 2);
  // In any order, without them where nobody looks, and by their places.
  EXPECT_THAT(read("age,rooms,size,price\n5,6,7,8\n", {.known = table.schema}).y.span<float>(),
              ElementsAre(8, 5));
  EXPECT_THAT(read("rooms,size\n6,7\n", {.known = table.schema, .labelled = false}).x.span<float>(),
              ElementsAre(7, 6));
  EXPECT_THAT(read("9,1,2,4\n", {.known = table.schema}).y.span<float>(), ElementsAre(9, 4));
  refuse("size,rooms,price\n1,2,3\n", "there is no column \"age\", which holds one of the labels",
         {.known = table.schema});
}

TEST_F(Csv, TakesBlanksBetweenTargetsAndRefusesOneLabelAlone) {
  EXPECT_EQ(read("a,b,c\n1,.5,2\n", {.target = "b , c"}).y.shape(), (Shape{1, 2}));
  refuse("a,tags\n1,cat|\n2,\n", "one label, cat; there must be at least two");
}

TEST_F(Csv, KeepsATargetWhoseNameHasAComma) {
  EXPECT_THAT(read("a,\"b,c\"\n1,.5\n2,.25\n", {.target = "b,c"}).y.span<float>(), ElementsAre(.5F, .25F));
}

TEST_F(Csv, RefusesTargetsThatAreNone) {
  refuse("a,b,c\n1,2,3\n", "--target d: there is no such column; there are a, b, c", {.target = "a,d"});
  refuse("a,b,c\n1,2,3\n", "--target a,1 names column 1 twice", {.target = "a,1"});
  refuse("a,b\n1,2\n", "line 1: --target takes all 2 columns", {.target = "a,b"});
  refuse("a,b,c\n1,2,x\n2,3,y\n", "column 3 \"c\" holds words; of several targets each holds numbers",
         {.target = "b,c"});
  refuse("a,b,c\n1,2,3\n", "--target names 2 columns, and --loss softmax is for one",
         {.target = "b,c", .label_kind = LabelKind::one_class});
  refuse("a,b,c\n1,2,\n", "line 2, column 3: an empty cell", {.target = "b,c"});
}

TEST_F(Csv, TakesColumnsOfZeroAndOneAsSeveralLabels) {
  const CsvTable table = read("size,cat,dog\n1,1,0\n2,1,1\n3,0,0\n", {.target = "cat,dog"});
  EXPECT_EQ(table.schema->label_kind, LabelKind::several);
  EXPECT_EQ(table.y.shape(), (Shape{3, 2}));
  EXPECT_THAT(table.y.span<float>(), ElementsAre(1, 0, 1, 1, 0, 0));
  EXPECT_EQ(table.note, "labels: columns 2 \"cat\", 3 \"dog\"");
  EXPECT_THAT(table.schema->output_names(), ElementsAre("cat", "dog"));
  EXPECT_EQ(table_schema_from_json(to_json(*table.schema)).label_kind, LabelKind::several);
  refuse("size,cat,dog\n1,1,2\n", "line 2, column 3: label 2; labels of several columns are 0 or 1",
         {.known = table.schema});
  refuse("size,cat,dog\n1,1,2\n", "line 2, column 3: label 2; labels of several columns are 0 or 1",
         {.target = "cat,dog", .label_kind = LabelKind::several});
  EXPECT_EQ(read("size,cat,dog\n1,1,0\n", {.target = "cat,dog", .label_kind = LabelKind::numbers})
                .schema->label_kind,
            LabelKind::numbers);
}

TEST_F(Csv, TakesWordsBetweenBarsAsSeveralLabels) {
  const CsvTable table = read("size,tags\n1,dog|cat\n2,dog\n3,\n4,\" bird | dog|\"\n5,7\n");
  EXPECT_EQ(table.schema->label_kind, LabelKind::several);
  EXPECT_THAT(table.schema->output_names(), ElementsAre("7", "bird", "cat", "dog"));
  EXPECT_EQ(table.y.shape(), (Shape{5, 4}));
  EXPECT_THAT(table.y.span<float>(), ElementsAre(0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0));
  EXPECT_EQ(table.note, "labels: column 2 \"tags\", 1 line without a label");
  const auto kept = std::make_shared<const TableSchema>(table_schema_from_json(to_json(*table.schema)));
  EXPECT_THAT(read("tags,size\ncat,1\n", {.known = kept}).y.span<float>(), ElementsAre(0, 0, 1, 0));
  refuse("size,tags\n1,cat|cow\n", "line 2: label \"cow\" is none of the 4 labels, 7, bird, cat, dog",
         {.known = kept});
  EXPECT_THAT(
      read("size,tags\n1,a|b\n2,c\n3,a|b\n", {.label_kind = LabelKind::one_class}).y.span<std::int32_t>(),
      ElementsAre(0, 1, 0));
  EXPECT_EQ(read("size,tags\n1,a|b\n2,\n", {.missing = MissingCells::drop}).y.shape(), (Shape{1, 2}));
}

TEST_F(Csv, RefusesOneLabelWhereSeveralAreAskedFor) {
  for (const char* text : {"size,tags\n1,cat\n2,dog\n", "size,tags\n1,0\n2,1\n", "size,tags\n1,.5\n2,1\n"})
    refuse(text, "column 2 \"tags\" has one label in each line; --loss bce takes words with | between them",
           {.label_kind = LabelKind::several});
}

TEST_F(Csv, TakesLabelsAsItIsAsked) {
  const CsvTable table = read("a,label\n1,1\n2,2\n", {.label_kind = LabelKind::numbers});
  EXPECT_THAT(table.y.span<float>(), ElementsAre(1, 2)) << "and not as 0 and 1";
  refuse("a,label\n1,1\n2,2.5\n", "line 3, column 2: label 2.5; labels are whole numbers",
         {.label_kind = LabelKind::one_class});
  refuse("a,label\n1,x\n2,y\n", "column 2 \"label\" holds words", {.label_kind = LabelKind::numbers});
}

TEST_F(Csv, TakesWordsOfALabelAsClassesInTheirOrder) {
  const CsvTable table = read("size,species\n1,dog\n2,\"cat\"\n3,dog\n");
  EXPECT_THAT(table.y.span<std::int32_t>(), ElementsAre(1, 0, 1));
  EXPECT_THAT(table.schema->labels.front().words, ElementsAre("cat", "dog"));
}

TEST_F(Csv, MakesAnElementOfEachWordOfACategory) {
  const CsvTable table = read("colour,size,label\nred,7,0\nblue,8,1\n\"say \"\"hi\"\", twice\",9,1\n");
  EXPECT_EQ(table.x.shape(), (Shape{3, 4}));
  EXPECT_THAT(table.schema->features[0].words, ElementsAre("blue", "red", "say \"hi\", twice"));
  EXPECT_THAT(table.x.span<float>(), ElementsAre(0, 1, 0, 7, 1, 0, 0, 8, 0, 0, 1, 9));
  EXPECT_THAT(table.note, HasSubstr("3 words in column 1"));
}

TEST_F(Csv, ReadsAnotherTableByTheColumnsOfTheFirst) {
  const CsvOptions options{.known = read("colour,size,label\nred,7,dog\nblue,8,cat\n").schema};
  const CsvTable other =
      read("label,extra,size,colour\ndog,0,1,blue\ncat,0,2,green\ncat,0,3,green\n", options);
  EXPECT_THAT(other.y.span<std::int32_t>(), ElementsAre(1, 0, 0));
  EXPECT_THAT(other.x.span<float>(), ElementsAre(1, 0, 1, 0, 0, 2, 0, 0, 3));
  EXPECT_EQ(other.note,
            "left out: column 2 \"extra\", of which the model has not learnt, 2 of the unknown word "
            "\"green\" (line 3, column 4)");
  refuse("label,size,colour\nfox,1,red\n", "label \"fox\" is none of the 2 classes, cat, dog", options);
  refuse("label,colour\ndog,red\n", "no column \"size\"", options);
  refuse("size,colour\n1,red\n", "no column \"label\"", options);
  refuse("label,size,colour\ndog,big,red\n", "line 2, column 2: \"big\"", options);
}

TEST_F(Csv, NeedsNoLabelsWhereNobodyAsksForThem) {
  const CsvOptions named{.known = read("colour,size,label\nred,7,dog\nblue,8,cat\n").schema,
                         .labelled = false};
  EXPECT_THAT(read("size,colour\n1,red\n", named).x.span<float>(), ElementsAre(0, 1, 1));
  EXPECT_THAT(read("size,label,colour\n1,,red\n", named).x.span<float>(), ElementsAre(0, 1, 1));
  const CsvOptions plain{.known = std::make_shared<const TableSchema>(plain_table(2)), .labelled = false};
  for (const char* text : {"1,2\n", "1,2,x\n", "a,b\n1,2\n", "label,a,b\n7,1,2\n", ",a,b\n7,1,2\n"})
    EXPECT_THAT(read(text, plain).x.span<float>(), ElementsAre(1, 2)) << text;
  refuse("1\n", "1 column; the model takes 2", plain);
  refuse("1,2,3,4\n", "4 columns; the model takes 2", plain);
}

TEST_F(Csv, RefusesAnEmptyCellUnlessItIsSaidWhatStandsThere) {
  const std::string text = "a,b,label\n1,4,0\n,5,1\n3,NA,1\n";
  refuse(text, "line 3, column 1: an empty cell; --missing mean or zero fills it");
  EXPECT_THAT(read(text, {.missing = MissingCells::mean}).x.span<float>(), ElementsAre(1, 4, 2, 5, 3, 4.5F));
  EXPECT_THAT(read(text, {.missing = MissingCells::zero}).x.span<float>(), ElementsAre(1, 4, 0, 5, 3, 0));
  const CsvTable whole = read(text, {.missing = MissingCells::drop});
  EXPECT_THAT(whole.x.span<float>(), ElementsAre(1, 4));
  EXPECT_THAT(whole.y.span<std::int32_t>(), ElementsAre(0));
  EXPECT_THAT(whole.note, HasSubstr("left out: 2 lines with empty cells"));
  EXPECT_THAT(read(text, {.missing = MissingCells::mean}).note, HasSubstr("2 empty cells: mean"));
}

TEST_F(Csv, FillsAnotherTableWithTheMeansOfTheFirst) {
  const CsvOptions options{.known = read("a,label\n1,0\n5,1\n", {.missing = MissingCells::mean}).schema};
  EXPECT_THAT(read("a,label\n100,0\n,1\n", options).x.span<float>(), ElementsAre(100, 3));
}

TEST_F(Csv, NeverFillsALabel) {
  refuse("a,label\n1,0\n2,\n",
         "line 3, column 2: an empty cell; a sample needs its label, and --missing mean, zero or drop");
  const std::string text = "a,label\n1,0\n2,\n,1\n";
  EXPECT_EQ(read(text, {.missing = MissingCells::drop}).y.elements(), 1);
  const CsvTable filled = read(text, {.missing = MissingCells::mean});
  EXPECT_THAT(filled.x.span<float>(), ElementsAre(1, 1.5F));
  EXPECT_THAT(filled.note, AllOf(HasSubstr("left out: 1 line without a label (such as line 3"),
                                 HasSubstr("1 empty cell: mean (such as line 4")));
  EXPECT_EQ(
      read("a,t,u\n1,0,1\n2,,1\n3,1,0\n", {.target = "t,u", .missing = MissingCells::zero}).y.elements(), 4);
  EXPECT_EQ(read("a,label\n1,x|y\n2,\n", {.missing = MissingCells::zero}).y.shape().dim(0), 2);
}

TEST_F(Csv, FindsSemicolonsWithDecimalCommasAndTabs) {
  const CsvTable table = read("a;b;label\n1,5;2;0\n-0,25;3.5;1\n");
  EXPECT_THAT(table.x.span<float>(), ElementsAre(1.5F, 2, -0.25F, 3.5F));
  EXPECT_THAT(table.note, HasSubstr("fields between \";\""));
  EXPECT_THAT(read("a\tlabel\n7\t1\n8\t0\n").x.span<float>(), ElementsAre(7, 8));
}

TEST_F(Csv, TellsDecimalCommasFromSeparatorsWhereThereAreMoreOfThem) {
  const CsvTable table = read("1,5;2,5;3,5;1\n0,5;1,5;2,5;0\n");
  EXPECT_THAT(table.x.span<float>(), ElementsAre(1.5F, 2.5F, 3.5F, 0.5F, 1.5F, 2.5F));
  EXPECT_THAT(table.note, HasSubstr("fields between \";\", 6 numbers with decimal commas"));
  EXPECT_THAT(read("1,5\t2,5\t1\n0,5\t1,5\t0\n").x.span<float>(), ElementsAre(1.5F, 2.5F, 0.5F, 1.5F));
  EXPECT_THAT(read("\"height; cm\",label\n1,0\n2,1\n").x.span<float>(), ElementsAre(1, 2));
  EXPECT_THAT(read("\"height, cm\";\"b, c\";label\n1;2;0\n").x.span<float>(), ElementsAre(1, 2));
}

TEST_F(Csv, TakesQuotedDecimalCommasBetweenCommasWhereTheColumnAgrees) {
  const CsvTable table = read("a,b,label\n\"0,5\",1,0\n2,\"1,250\",1\n\"-1,25\",\"0,5\",1\n");
  EXPECT_THAT(table.x.span<float>(), ElementsAre(0.5F, 1, 2, 1.25F, -1.25F, 0.5F));
  EXPECT_EQ(table.note, "label: column 3 \"label\", decimal commas in columns 1 \"a\", 2 \"b\"");
  EXPECT_THAT(read("\"0,5\",\"1,5\"\n\"2,5\",\"3,5\"\n").y.span<float>(), ElementsAre(1.5F, 3.5F))
      << "they are no names, and labels have them too";
  // By the training's columns a comma is known to be a decimal one.
  const auto kept = std::make_shared<const TableSchema>(table_schema_from_json(to_json(*table.schema)));
  EXPECT_THAT(read("a,b,label\n\"1,234\",7,0\n", {.known = kept}).x.span<float>(), ElementsAre(1.234F, 7));
  EXPECT_EQ(read("a,b,label\n\"1,234\",7,0\n", {.known = kept}).note, "");
}

TEST_F(Csv, RefusesCommasThatMayBeThoseOfThousands) {
  const char* const why =
      "a comma may be a decimal one or of thousands; write the number with a point, or without";
  refuse("a,label\n999,0\n\"1,234\",1\n", std::string("line 3, column 1: \"1,234\": ") + why);
  refuse("a,label\n1.5,0\n\"0,25\",1\n2.5,1\n",
         "line 3, column 1: \"0,25\": it has a decimal comma, and other numbers of the column have decimal "
         "points, as \"1.5\"");
  EXPECT_THAT(read("a,label\nred,0\n\"1,5\",1\n").schema->features[0].words, ElementsAre("1,5", "red"));
}

TEST_F(Csv, TakesLineBreaksWithinQuotes) {
  const CsvTable table =
      read("\"height\n(cm)\",kind,label\r\n1,\"red,\r\nor pink\",0\r\n2,blue,1\r\n3,\"blue\",1\r\n",
           {.missing = MissingCells::zero});
  EXPECT_EQ(table.schema->features[0].name, "height (cm)");
  EXPECT_THAT(table.schema->features[1].words, ElementsAre("blue", "red, or pink"));
  EXPECT_THAT(table.lines, ElementsAre(3, 5, 6)) << "where a row begins";
  EXPECT_THAT(read("\"height\n(cm)\",kind,label\n1,2,0\n", {.ignore = {"height (cm)"}}).x.span<float>(),
              ElementsAre(2));
  refuse("a,b,label\n1,\"x\ny\",0,5\n", "lines 2 to 3, which quotes join: 4 columns; the first line has 3");
  refuse("a,b,label\n1,\"x, y,0\n2,y,1\n",
         "line 2: 4 columns; the first line has 3, and here a quote begins a field that none ends");
}

TEST_F(Csv, TakesASeparatorThatTheFirstLineNamesAsExcelDoes) {
  const CsvTable table = read("\xef\xbb\xbfsep=;\r\na,1;b;label\r\n1;2,5;0\r\n3;4;1\r\n");
  EXPECT_EQ(table.schema->features[0].name, "a,1");
  EXPECT_THAT(table.x.span<float>(), ElementsAre(1, 2.5F, 3, 4));
  EXPECT_THAT(table.lines, ElementsAre(3, 4));
  EXPECT_THAT(read("\"SEP=,\"\n1;2,0\n3;4,1\n").schema->features[0].words, ElementsAre("1;2", "3;4"));
  EXPECT_THAT(read("sep=\t\na\tlabel\n7\t1\n8\t0\n").x.span<float>(), ElementsAre(7, 8));
  refuse("sep=|\na|label\n7|1\n",
         "line 1: \"sep=|\" names what separates the fields; it must be a comma, a semicolon or a tab");
}

TEST_F(Csv, TakesLinesThatEndInALoneCarriageReturn) {
  const CsvTable table = read("a,label\r1,0\r\r2,1\r");
  EXPECT_THAT(table.x.span<float>(), ElementsAre(1, 2));
  EXPECT_THAT(table.lines, ElementsAre(2, 4));
  refuse("a,label\r1,0\rx\xE9,1\r", "line 3: it is not UTF-8");
}

TEST_F(Csv, TakesNamesWithACommaInQuotes) {
  const std::string text = "\"height, cm\",\"b,c\",d,label\n1,2,3,0\n4,5,6,1\n";
  EXPECT_THAT(read(text, {.target = "\"b,c\",\"height, cm\"", .label_kind = LabelKind::numbers})
                  .schema->output_names(),
              ElementsAre("b,c", "height, cm"));
  refuse(text, "--target e: there is no such column; there are \"height, cm\", \"b,c\", d, label",
         {.target = "d,e"});
}

TEST_F(Csv, FindsTheColumnsOfAFileWithoutNamesByTheirPlaces) {
  const CsvOptions ignoring{.target = "1", .ignore = {"4"}};
  const CsvTable first = read("0,5,6,7\n1,8,9,7\n", ignoring);
  EXPECT_THAT(first.x.span<float>(), ElementsAre(5, 6, 8, 9));
  EXPECT_THAT(read("1,2,3,4\n", {.known = first.schema}).x.span<float>(), ElementsAre(2, 3));
  EXPECT_THAT(read("2,3\n", {.known = first.schema, .labelled = false}).x.span<float>(), ElementsAre(2, 3));
  const CsvTable named = read("label,a,b\n0,5,6\n1,8,9\n");
  const CsvTable bare = read("1,2,3\n", {.known = named.schema});
  EXPECT_THAT(bare.x.span<float>(), ElementsAre(2, 3));
  EXPECT_THAT(bare.warnings,
              ElementsAre(HasSubstr("its first line has no names, so its columns are taken by")));
}

TEST_F(Csv, SaysNothingOfColumnsThatTheTrainingIgnored) {
  const CsvTable first = read("id,a,label\nn1,1,0\nn2,2,1\n", {.ignore = {"id"}});
  EXPECT_EQ(read("id,a,label\nn3,1,0\n", {.known = first.schema}).note, "");
}

TEST_F(Csv, RefusesToLeaveTheLabelOut) {
  refuse("a,label\n1,0\n", "column 2 \"label\" is the label, and --ignore leaves it out",
         {.ignore = {"label"}});
}

TEST_F(Csv, LeavesColumnsOutAndTakesTheLabelThatIsNamed) {
  const CsvTable table = read("id,a,kind,b\n17,1,x,2\n18,3,y,4\n", {.target = "kind", .ignore = {"id", "4"}});
  EXPECT_THAT(table.x.span<float>(), ElementsAre(1, 3));
  EXPECT_THAT(table.schema->labels.front().words, ElementsAre("x", "y"));
  EXPECT_THAT(table.note, HasSubstr("left out: column 1 \"id\", left out: column 4 \"b\""));
  EXPECT_THAT(read("1,2,3\n0,5,6\n", {.target = "1"}).y.span<std::int32_t>(), ElementsAre(1, 0));
  refuse("a,b\n1,2\n", "--target c: there is no such column; there are a, b", {.target = "c"});
  refuse("a,b\n1,2\n", "--ignore c: there is no such column", {.ignore = {"c"}});
}

TEST_F(Csv, CountsLabelsThatBeginWithOneFromZeroAndCallsThemByTheirNumbers) {
  const CsvTable table = read("a,label\n1,3\n2,1\n3,2\n");
  EXPECT_THAT(table.y.span<std::int32_t>(), ElementsAre(2, 0, 1));
  EXPECT_THAT(table.schema->labels.front().words, ElementsAre("1", "2", "3"));
  EXPECT_THAT(table.note, HasSubstr("labels 1 to 3 are the classes (predictions name them so)"));
  EXPECT_THAT(read("a,label\n1,2.0\n", {.known = table.schema}).y.span<std::int32_t>(), ElementsAre(1));
}

TEST_F(Csv, JoinsFilesWhoseColumnsHaveTheSameNames) {
  std::ofstream(folder_ / "1.csv") << "a,kind\n1,x\n2,y\n";
  std::ofstream(folder_ / "2.csv") << "kind;a\nz;3,5\n";
  const CsvTable table =
      read_csv(std::vector<std::filesystem::path>{folder_ / "1.csv", folder_ / "2.csv"}, {.target = "kind"});
  EXPECT_THAT(table.x.span<float>(), ElementsAre(1, 2, 3.5F));
  EXPECT_THAT(table.schema->labels.front().words, ElementsAre("x", "y", "z"));
  std::ofstream(folder_ / "3.csv") << "a,label\n1,0\n2,1\n";
  std::ofstream(folder_ / "4.csv") << "a,label\n1,-1\n";
  EXPECT_THAT(
      [&] {
        read_csv(std::vector<std::filesystem::path>{folder_ / "3.csv", folder_ / "4.csv"});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("4.csv, line 2, column 2: label -1")));
}

TEST_F(Csv, RefusesAColumnOfAThousandWordsWithTheWayOut) {
  std::string text = "id,label\n";
  for (int i = 0; i < 1001; ++i) text += "n" + std::to_string(i) + ",0\n";
  refuse(text, "column 1 \"id\" has more than 1000 words; --ignore id leaves it out");
}

TEST_F(Csv, KeepsItsColumnsAsJson) {
  const CsvTable table = read("colour,size,label\nred,7,dog\nblue,,cat\n", {.missing = MissingCells::mean});
  const TableSchema back = table_schema_from_json(to_json(*table.schema));
  EXPECT_EQ(to_json(back), to_json(*table.schema));
  EXPECT_THAT(back.features[0].words, ElementsAre("blue", "red"));
  EXPECT_EQ(back.features[1].mean, 7);
  EXPECT_EQ(back.missing, MissingCells::mean);
  for (const char* damaged : {"{", "[]", R"({"features": [], "label": {}})"})
    EXPECT_THROW(table_schema_from_json(damaged), DataLossError);
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
