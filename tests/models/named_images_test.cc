// Pictures whose labels a table tells.
#include <kolo/models/data.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/models/batches.h>

#include "tests/models/data_folder.h"

namespace kolo::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class NamedImages : public DataFolder {};

TEST_F(NamedImages, HaveTheClassesThatTheTableTells) {
  for (int i = 0; i < 20; ++i)
    write_picture("p" + std::to_string(i) +
                      (i == 5   ? ".webp"
                       : i == 7 ? ".PNG"
                                : ".png"),
                  static_cast<std::uint8_t>(i));
  write_picture("more.jpg", 1);
  std::string table = "id,where,breed\n";
  for (int i = 0; i < 20; ++i)
    table +=
        "p" + std::to_string(i) + (i % 2 == 0 ? ".png" : "") + ",x," + (i % 3 == 0 ? "pug" : "collie") + "\n";
  write("labels.csv", table);
  const DataSplits splits = load_splits(request());
  EXPECT_EQ(splits.train->size() + splits.test->size(), 20);
  EXPECT_EQ(
      splits.train->kind().note,
      fmt::format(
          "pictures: column 1 \"id\" of labels.csv, label: column 3 \"breed\", left out: column 2 \"where\", "
          "left out: 1 picture that it does not name, {} of 20 pictures for testing by the seed 1",
          splits.test->size()));
  EXPECT_THAT(splits.train->kind().class_names, ElementsAre("collie", "pug"));
  // Each picture is of the class that the table gives it, in one of the two parts.
  int seen = 0;
  for (const auto& part : {splits.train, splits.test}) {
    Batch batch;
    for (EvaluationBatches batches(part, {.batch_size = 1}); batches.next(batch); ++seen) {
      const auto grey = static_cast<int>(std::lround(batch.samples.span<float>()[0] * 255));
      EXPECT_EQ(batch.labels.span<std::int32_t>()[0], grey % 3 == 0 ? 1 : 0) << grey;
    }
  }
  EXPECT_EQ(seen, 20);
  DataRequest other = request();
  other.class_names = {"bulldog", "collie", "pug"}, other.classes = 3, other.whole = true;
  const auto all = load_data(other, Split::test);
  EXPECT_EQ(all->size(), 20);
  EXPECT_THAT(all->class_counts(), ElementsAre(0, 13, 7));
  other.class_names = {"bulldog", "pug"};
  EXPECT_THAT([&] { load_data(other, Split::test); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("class \"collie\" is none of the 2 classes")));
}

TEST_F(NamedImages, MayLieInTheOnlyFolderOfPicturesBesideTheirTable) {
  for (int i = 0; i < 20; ++i)
    write_picture("images/p" + std::to_string(i) + ".png", static_cast<std::uint8_t>(i));
  for (const char* const below : {"", "images/"}) {
    std::string table = "image,label\n";
    for (int i = 0; i < 20; ++i)
      table += fmt::format("{}p{}.png,{}\n", below, i, i % 2 == 0 ? "even" : "odd");
    write("labels.csv", table);
    const DataSplits splits = load_splits(request());
    EXPECT_EQ(splits.train->size() + splits.test->size(), 20) << below;
    EXPECT_THAT(splits.train->kind().class_names, ElementsAre("even", "odd"));
    EXPECT_EQ(splits.train->kind().note,
              fmt::format("pictures: column 1 \"image\" of labels.csv, label: column 2 \"label\", {} of 20 "
                          "pictures for testing by the seed 1",
                          splits.test->size()));
    ASSERT_FALSE(splits.drawn.empty());
    EXPECT_THAT(splits.drawn.front(), testing::StartsWith("images/p"));
  }
}

TEST_F(NamedImages, HaveATableInTrainAndInTest) {
  for (const char* part : {"train", "test"}) {
    for (int i = 0; i < 3; ++i) write_picture(std::string(part) + "/" + std::to_string(i) + ".png", 1);
    write(std::string(part) + "/list.csv",
          part == std::string("train") ? "0.png,10\n1.png,9\n2.png,9\n" : "1.png,10\n");
  }
  const DataSplits splits = load_splits(request());
  EXPECT_THAT(splits.train->kind().class_names, ElementsAre("9", "10"));
  EXPECT_THAT(splits.train->class_counts(), ElementsAre(2, 1));
  EXPECT_THAT(splits.test->class_counts(), ElementsAre(0, 1));
}

TEST_F(NamedImages, NameTheLineOfTheirTableThatIsWrong) {
  write_picture("a.png", 1);
  write_picture("b.png", 1);
  write("d.bmp", "BM");
  for (const auto& [table, why] : std::vector<std::pair<std::string, std::string>>{
           {"file,label\na.png,x\nc.png,y\n", "line 3: there is no picture \"c.png\""},
           {"file,label\na.png,x\nd.bmp,y\n",
            "line 3: \"d.bmp\" is no picture that kolo reads (.jpg, .jpeg, .png or .webp)"},
           {"file,label\na.png,x\na,y\n", "line 3: the picture \"a\" has a line before"},
           {"file,label\na.png,x\nb.png,\n", "line 3: the picture \"b.png\" has no class"},
           {"file,label\na.png,x\nb.png\n", "line 3: 1 column;"},
           {"file,label\nx,x\n", "line 2: no column holds the name of a picture"},
           {"file,label\na.png,x\nb.png,x\n", "one class, \"x\""}}) {
    write("t.csv", table);
    EXPECT_THAT([&] { load_splits(request()); }, ThrowsMessage<InvalidArgumentError>(HasSubstr(why)))
        << table;
  }
}

TEST_F(NamedImages, HaveSeveralLabels) {
  for (const char* part : {"train", "test"})
    for (int i = 0; i < 3; ++i) write_picture(std::string(part) + "/" + std::to_string(i) + ".png", 1);
  write("train/list.csv", "0.png,dog|cat\n1.png,\n2.png,dog\n");
  write("test/list.csv", "1.png,cat\n");
  const DataSplits splits = load_splits(request());
  EXPECT_EQ(splits.train->kind().label_kind, LabelKind::several);
  EXPECT_THAT(splits.train->kind().class_names, ElementsAre("cat", "dog"));
  EXPECT_THAT(splits.train->class_counts(), ElementsAre(1, 2));
  EXPECT_THAT(splits.train->kind().note, HasSubstr("labels: column 2, 1 picture without a label"));
  Batch batch;
  EvaluationBatches(splits.train, {.batch_size = 3}).next(batch);
  EXPECT_THAT(batch.labels.span<float>(), ElementsAre(1, 1, 0, 0, 0, 1));
  EvaluationBatches(splits.test, {.batch_size = 3}).next(batch);
  EXPECT_THAT(batch.labels.span<float>(), ElementsAre(1, 0));
  DataRequest asked = request();
  asked.label_kind = LabelKind::one_class;
  EXPECT_THAT([&] { load_splits(asked); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("has no class")));
  asked.label_kind = LabelKind::several;
  write("train/list.csv", "0.png,cat\n1.png,dog\n");
  EXPECT_THAT([&] { load_splits(asked); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("has one label in each line")));
  write("test/list.csv", "1.png,cow\n");
  write("train/list.csv", "0.png,dog|cat\n1.png,dog\n");
  EXPECT_THAT([&] { load_splits(request()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("\"cow\" is none of the 2")));
}

TEST_F(NamedImages, HaveNumbersAsTablesHaveThem) {
  for (int i = 0; i < 3; ++i) write_picture("train/" + std::to_string(i) + ".png", 1);
  write("train/list.csv", "file;price;size\n0.png;1.100,5;1,5\n1.png;900;2\n2.png;2.000;3\n");
  DataRequest request = this->request();
  request.table.target = "price,size";
  const auto samples = load_splits(request).train;
  EXPECT_THAT(samples->kind().note,
              HasSubstr("targets: columns 2 \"price\", 3 \"size\", fields between \";\", 2 "
                        "numbers with decimal commas, points of thousands in column 2"));
  Batch batch;
  EvaluationBatches(samples, {.batch_size = 3}).next(batch);
  EXPECT_THAT(batch.labels.span<float>(), ElementsAre(1100.5F, 1.5F, 900, 2, 2000, 3));
  write("train/list.csv", "file,price,size\n0.png,\"1,100.5\",1\n1.png,\"9,000\",2\n2.png,2.000,3\n");
  EvaluationBatches(load_splits(request).train, {.batch_size = 3}).next(batch);
  EXPECT_THAT(batch.labels.span<float>(), ElementsAre(1100.5F, 1, 9000, 2, 2, 3));
  write("train/list.csv", "file;price;size\n0.png;1.100;1,5\n1.png;900;2\n2.png;2.000;3\n");
  EXPECT_THAT([&] { load_splits(request); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("line 2, column 2: \"1.100\": a point may be")));
}

TEST_F(NamedImages, AreTestedByNumbersAsTheTrainingsAreWritten) {
  for (const char* part : {"train", "test"})
    for (int i = 0; i < 3; ++i) write_picture(std::string(part) + "/" + std::to_string(i) + ".png", 1);
  write("train/list.csv", "file;price\n0.png;1.100,5\n1.png;900\n2.png;2.000\n");
  write("test/list.csv", "file;price\n0.png;1.100\n1.png;900\n");
  DataRequest asked = request();
  const DataSplits splits = load_splits(asked);
  Batch batch;
  EvaluationBatches(splits.test, {.batch_size = 2}).next(batch);
  EXPECT_THAT(batch.labels.span<float>(), ElementsAre(1100, 900));
  EXPECT_EQ(splits.train->kind().largest_label, 2000);
  // As a checkpoint folder has kept it.
  asked.classes = 1, asked.label_kind = LabelKind::numbers;
  asked.label_table =
      std::make_shared<const TableSchema>(table_schema_from_json(to_json(*splits.train->kind().label_table)));
  EvaluationBatches(load_data(asked, Split::test), {.batch_size = 2}).next(batch);
  EXPECT_THAT(batch.labels.span<float>(), ElementsAre(1100, 900));
  write("test/list.csv", "file;price\n0.png;1.5\n1.png;900\n");
  EXPECT_THAT(
      [&] { load_splits(request()); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("line 2, column 2: \"1.5\": the training's numbers")));
}

TEST_F(NamedImages, HaveNumbersToFind) {
  for (const char* part : {"train", "test"})
    for (int i = 0; i < 3; ++i) write_picture(std::string(part) + "/" + std::to_string(i) + ".png", 1);
  write("train/list.csv", "file,score\n0.png,1.5\n1.png,\"-0,25\"\n2.png,3\n");
  EXPECT_THAT([&] { load_splits(request()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("line 3, column 2: \"-0,25\"")))
      << "a point and a comma";
  write("train/list.csv", "file,score\n0.png,1.5\n1.png,-0.25\n2.png,3\n");
  write("test/list.csv", "file,score\n1.png,7\n");
  DataSplits splits = load_splits(request());
  EXPECT_EQ(splits.train->kind().label_kind, LabelKind::numbers);
  EXPECT_THAT(splits.train->kind().class_names, ElementsAre("score"));
  EXPECT_THAT(
      description(*splits.train),
      HasSubstr("1 number to find, pictures: column 1 \"file\" of list.csv, target: column 2 \"score\""));
  Batch batch;
  EvaluationBatches(splits.train, {.batch_size = 3}).next(batch);
  EXPECT_THAT(batch.labels.span<float>(), ElementsAre(1.5F, -0.25F, 3));
  EvaluationBatches(splits.test, {.batch_size = 3}).next(batch);
  EXPECT_THAT(batch.labels.span<float>(), ElementsAre(7));
  write("test/list.csv", "file,score\n1.png,good\n");
  EXPECT_THAT([&] { load_splits(request()); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("line 2, column 2: \"good\" is no number that f32 holds")));
  write("test/list.csv", "file,score\n1.png,\n");
  EXPECT_THAT([&] { load_splits(request()); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("line 2, column 2: an empty cell; a picture needs its number")));
}

TEST_F(NamedImages, HaveSeveralColumnsOfNumbers) {
  for (int i = 0; i < 20; ++i) write_picture(std::to_string(i) + ".png", static_cast<std::uint8_t>(i));
  std::string table = "file,age,note,height\n";
  for (int i = 0; i < 20; ++i) table += fmt::format("{}.png,{},x,{}\n", i, i, 100 + i);
  write("list.csv", table);
  DataRequest asked = request();
  asked.table.target = "age,height";
  const DataSplits splits = load_splits(asked);
  EXPECT_THAT(splits.train->kind().class_names, ElementsAre("age", "height"));
  EXPECT_THAT(splits.train->kind().note,
              HasSubstr("targets: columns 2 \"age\", 4 \"height\", left out: column 3 \"note\""));
  for (const auto& part : {splits.train, splits.test}) {
    Batch batch;
    for (EvaluationBatches batches(part, {.batch_size = 1}); batches.next(batch);) {
      const auto grey = static_cast<float>(std::lround(batch.samples.span<float>()[0] * 255));
      EXPECT_THAT(batch.labels.span<float>(), ElementsAre(grey, 100 + grey));
    }
  }
  asked.label_kind = LabelKind::numbers, asked.table.target = "age";
  EXPECT_THAT(load_splits(asked).train->kind().class_names, ElementsAre("age"))
      << "whole numbers, with --loss mse";
  asked.table.target = "age,note";
  EXPECT_THAT([&] { load_splits(asked); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("column 3 \"note\" holds words")));
  asked.table.target = "file";
  EXPECT_THAT([&] { load_splits(asked); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("column 1 holds the names of the pictures")));
  asked.table.target = "size";
  EXPECT_THAT([&] { load_splits(asked); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("--target size: there is no such column; there are file, age, note, height")));
}

TEST_F(NamedImages, HaveColumnsOfZeroAndOne) {
  for (int i = 0; i < 3; ++i) write_picture(std::to_string(i) + ".png", 1);
  write("list.csv", "file,cat,dog\n0.png,1,1\n1.png,0,0\n2.png,0,1\n");
  DataRequest asked = request();
  asked.table.target = "cat,dog";
  const auto samples = load_splits(asked).train;
  EXPECT_EQ(samples->kind().label_kind, LabelKind::several);
  EXPECT_THAT(samples->class_counts(), ElementsAre(1, 2));
  Batch batch;
  EvaluationBatches(samples, {.batch_size = 3}).next(batch);
  EXPECT_THAT(batch.labels.span<float>(), ElementsAre(1, 1, 0, 0, 0, 1));
  asked.classes = 2, asked.class_names = {"cat", "dog"}, asked.label_kind = LabelKind::several,
  asked.whole = true;
  EXPECT_EQ(load_data(asked, Split::test)->size(), 3);
  write("list.csv", "file,cat,dog\n0.png,2,1\n1.png,0,0\n2.png,0,1\n");
  EXPECT_THAT([&] { load_data(asked, Split::test); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("line 2, column 2: label 2; labels of several columns are 0 or 1")));
}

TEST_F(NamedImages, ThatAreNamedByAbsolutePathsAreDrawnByTheirNamesToo) {
  const std::filesystem::path folder = std::filesystem::absolute(folder_.path());
  std::string rows = "file,label\n";
  for (int i = 0; i < 60; ++i) {
    write_picture(std::to_string(i) + ".png", 1);
    rows += (folder / (std::to_string(i) + ".png")).string() + (i % 2 == 0 ? ",a\n" : ",b\n");
  }
  write("list.csv", rows);
  DataRequest asked = request();
  const std::vector<std::string> drawn = load_splits(asked).drawn;
  EXPECT_GT(drawn.size(), 1U);
  asked.data = folder.lexically_relative(std::filesystem::current_path()).string();
  EXPECT_EQ(load_splits(asked).drawn, drawn) << "from a relative path";
}

}  // namespace
}  // namespace kolo::models
