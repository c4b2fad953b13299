// What --data names: which kinds there are, how they are told apart, and what is refused.
#include <kolo/models/data.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/models/batches.h>

#include "tests/models/data_folder.h"
#include "tests/models/npy_file.h"

namespace kolo::models {
namespace {

using testing::AllOf;
using testing::Gt;
using testing::HasSubstr;
using testing::Lt;
using testing::ThrowsMessage;

class Data : public DataFolder {};

TEST_F(Data, OfWholeNumbersFarBeyondTheSamplesAreNoClasses) {
  write("train.csv", "rooms,price\n1,100000\n2,197341\n3,250000\n");
  DataRequest asked = request({}, DType::f32);
  EXPECT_THAT([&] { load_data(asked, Split::train); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("labels up to 250000 in 3 samples"), HasSubstr("--loss mse"))));
  asked.label_kind = LabelKind::numbers;
  EXPECT_EQ(load_data(asked, Split::train)->size(), 3);
  asked.label_kind = LabelKind::one_class;
  EXPECT_EQ(load_data(asked, Split::train)->kind().classes, 250001);
}

TEST_F(Data, AreRefusedWhereThereIsOneClassAlone) {
  write_picture("a/1.png", 1);
  EXPECT_THAT([&] { load_data(request(), Split::train); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("one class, \"a\"")));
  write("t.csv", "1,2,7\n3,4,7\n");
  EXPECT_THAT([&] { load_data(request({2}, DType::f32, "t.csv"), Split::train); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("all 2 labels are 7, label: column 3"), HasSubstr("two classes"))));
}

TEST_F(Data, AreNamedWhereNoneOfTheKnownKindsLiesThere) {
  write_picture("1.jpg", 1);
  write_picture("2.jpg", 1);
  EXPECT_THAT([&] { load_data(request(), Split::train); },
              ThrowsMessage<NotFoundError>(AllOf(HasSubstr("but 2 .jpg"),
                                                 HasSubstr("pictures in a folder for each class"),
                                                 HasSubstr("tables (.csv, .tsv)"))));
}

TEST_F(Data, RefuseOptionsOfTablesWhereThereIsNone) {
  write_picture("a/1.png", 1);
  write_picture("b/1.png", 2);
  DataRequest asked = request();
  asked.table.missing = MissingCells::mean;
  EXPECT_THAT([&] { load_data(asked, Split::train); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("--missing is for tables")));
}

TEST_F(Data, ShareOutTheRowsOfOneTableBySeed) {
  std::string rows = "a,kind\n";
  for (int i = 0; i < 40; ++i) rows += std::to_string(i) + (i < 20 ? ",low\n" : ",high\n");
  write("t.csv", rows);
  DataRequest asked = request({784}, DType::f32, "t.csv");
  const auto values = [](const SampleSet& samples) {
    std::vector<float> found;
    Batch batch;
    for (std::int64_t i = 0; i < samples.size(); ++i) {
      batch = {.samples = Tensor(DType::f32, {1, 1}), .labels = Tensor(DType::i32, {1})};
      samples.read(i, nullptr, batch, 0);
      found.push_back(batch.samples.span<float>()[0]);
    }
    return found;
  };
  const DataSplits splits = load_splits(asked);
  std::vector<float> all = values(*splits.train), testing = values(*splits.test);
  EXPECT_FALSE(testing.empty());
  EXPECT_EQ(values(*load_data(asked, Split::test)), testing);
  asked.seed = 2;
  EXPECT_NE(values(*load_data(asked, Split::test)), testing);
  all.insert(all.end(), testing.begin(), testing.end());
  std::sort(all.begin(), all.end());
  for (int i = 0; i < 40; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], static_cast<float>(i));
  asked.seed = 1;
  for (int i = 40; i < 400; ++i) rows += std::to_string(i) + ",high\n";
  write("t.csv", rows);
  std::vector<float> longer = values(*load_data(asked, Split::test));
  EXPECT_THAT(longer.size(), AllOf(Gt(20U), Lt(60U)));
  std::erase_if(longer, [](float value) { return value >= 40; });
  EXPECT_EQ(longer, testing) << "rows that are appended move no other one";
  asked.whole = true;
  EXPECT_EQ(load_data(asked, Split::test)->size(), 400);
}

TEST_F(Data, HaveTestLabelsThatCountAsTheTrainingsDo) {
  write("x_train.npy", npy("<f4", "(3, 1)", std::string(12, '\0')));
  write("y_train.npy", npy("|u1", "(3,)", std::string("\0\1\2", 3)));
  write("x_test.npy", npy("<f4", "(4, 1)", std::string(16, '\0')));
  write("y_test.npy", npy("|u1", "(4,)", "\1\2\3\3"));
  const auto refused = [&](const std::string& folder, const std::string& why) {
    EXPECT_THAT([&] { load_splits(request({1}, DType::f32, folder)); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr(why)));
  };
  refused("",
          "y_test.npy: label 3 is none of the 3 classes, 0, 1, 2, of y_train.npy; y_test.npy has 2 samples "
          "of 3; the "
          "labels of y_test.npy are 1 to 3, counted from 1, and those of y_train.npy 0 to 2, counted from 0; "
          "both must "
          "be counted alike");
  for (const char* train : {"t/train.csv", "u/train.csv", "v/train.csv"}) {
    std::string text = "a,label\n";
    for (int i = 0; i < 12; ++i)
      text += fmt::format(
          "{},{}\n", i % 5,
          std::string(1, static_cast<char>(train[0] == 'v' ? 'x' + i % 3 : '0' + (train[0] == 'u') + i % 3)));
    write(train, text);
  }
  write("t/test.csv", "a,label\n1,1\n1,3\n1,2\n");
  refused("t",
          "t/test.csv: label 3 is none of the 3 classes, 0, 1, 2, of train.csv; test.csv has 1 sample of 3; "
          "the labels of test.csv are 1 to 3, counted from 1,");
  write("t/test.csv", "a,label\n1,0\n1,7\n1,9\n1,9\n");
  refused("t",
          "label 7 is none of the 3 classes, 0, 1, 2, of train.csv; test.csv has 1 sample of 7, 2 of 9; "
          "leave such samples out");
  write("u/test.csv", "a,label\n1,1\n1,0\n1,2\n");
  refused("u",
          "u/test.csv, line 3: label \"0\" is none of the 3 classes, 1, 2, 3, of train.csv; test.csv has 1 "
          "sample of 0; the labels of test.csv are 0 to 2, counted from 0, and those of train.csv 1 to 3, "
          "counted from 1");
  write("v/test.csv", "a,label\n1,x\n1,w\n1,y\n1,v\n1,w\n");
  refused("v",
          "v/test.csv, line 3: label \"w\" is none of the 3 classes, x, y, z, of train.csv; test.csv has 1 "
          "sample of v, 2 of w; leave");
}

TEST_F(Data, AreTables) {
  write("train.csv", "a,b,Label\n1,2,0\n3,4,3\n");
  EXPECT_EQ(load_data(request({2}), Split::test), nullptr);
  write("test.csv", "a,b,label\n5,6,1\n");
  const auto train = load_data(request({2}), Split::train), test = load_data(request({2}), Split::test);
  EXPECT_EQ(
      description(*train),
      "train.csv, 2 samples of 2 numbers, 4 classes (0: 1, 1: 0, 2: 0, 3: 1), label: column 3 \"Label\"");
  EXPECT_EQ(test->kind().classes, 4);
  EXPECT_EQ(load_data(request({784}, DType::f32, "train.csv"), Split::train)->size(), 2);
  write("test.csv", "a,b,label\n5,6,4\n");
  EXPECT_THAT([&] { load_data(request({2}), Split::test); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("test.csv: label 4 is none of the 4 classes, 0, 1, 2, 3, of train.csv")));
}

TEST_F(Data, AreTablesWithOtherEndingsAndParts) {
  const std::string rows = "a,label\n1,0\n3,1\n";
  for (const char* test : {"test.tsv", "val.csv", "valid.csv", "validation.tsv"}) {
    const std::string root = std::string("of_") + test + "/";
    write(root + "train.tsv", rows);
    write(root + test, "a,label\n5,1\n");
    const DataSplits splits = load_splits(request({1}, DType::f32, root));
    EXPECT_EQ(splits.train->size(), 2) << test;
    ASSERT_NE(splits.test, nullptr) << test;
    EXPECT_EQ(splits.test->size(), 1) << test;
  }
}

TEST_F(Data, OfTablesThatAreJoinedAreWarnedOfByTheirNames) {
  const auto warnings = [&](const std::string& folder, const char* first, const char* second) {
    for (const char* name : {first, second}) write(folder + "/" + name, "a,label\n1,0\n3,1\n");
    return load_splits(request({1}, DType::f32, folder)).train->kind().warnings;
  };
  EXPECT_THAT(
      warnings("parts", "bin_Train.csv", "bin_test.csv"),
      ElementsAre(HasSubstr("2 tables are read as one, of which a tenth is for testing, although one is "
                            "called bin_Train.csv")));
  EXPECT_THAT(warnings("plain", "strain.csv", "contest.csv"), testing::IsEmpty());
  write("hidden/a.csv", "a,label\n1,0\n3,1\n");
  write("hidden/.b.csv", "a,label\n1,0\n3,1\n");
  EXPECT_EQ(load_splits(request({1}, DType::f32, "hidden")).train->size(), 2);
}

TEST_F(Data, AreATextForAModelOfTokens) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += static_cast<char>('a' + i % 7);
  write("works.txt", text);
  const DataRequest tokens = request({8}, DType::i32, "works.txt");
  EXPECT_EQ(description(*load_data(tokens, Split::train)), "works.txt, 56 pieces of 8 tokens of 7 kinds");
  EXPECT_EQ(load_data(tokens, Split::test)->size(), 6);
}

TEST_F(Data, SayWhereTheyAreNotWhatTheModelTakes) {
  write("works.txt", "to be or not to be");
  write("table.csv", "1,2\n3,4\n");
  write_picture("train/a/1.png", 1);
  EXPECT_THAT(
      [&] { load_data(request({784}, DType::f32, "works.txt"), Split::train); },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("works.txt"), HasSubstr("takes no tokens"))));
  EXPECT_THAT(
      [&] { load_data(request({8}, DType::i32, "table.csv"), Split::train); },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("table.csv"), HasSubstr("learns from a text"))));
  EXPECT_THAT([&] { load_data(request({8}, DType::i32), Split::train); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("images, and the model learns from a text")));
  EXPECT_THAT([&] { load_data(request({784}), Split::train); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("photographs"), HasSubstr("[784]"))));
}

}  // namespace
}  // namespace kolo::models
