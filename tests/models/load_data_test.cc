// What --data names: folders of photographs, arrays, tables, texts, and how they are told apart.
#include <kolo/models/data.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/models/batches.h>

#include "tests/models/data_folder.h"

namespace kolo::models {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::Gt;
using testing::HasSubstr;
using testing::Lt;
using testing::ThrowsMessage;

// An array as numpy.save writes it.
std::string npy(const std::string& type, const std::string& shape, const std::string& elements) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(117, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" + elements;
}

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

TEST_F(Data, ArePhotographsWhereAFolderForEachClassHoldsThem) {
  write_picture("train/dogs/1.webp", 40);
  write_picture("train/cats/b.png", 80, 20, 30);
  write_picture("train/cats/a.JPEG", 120, 9, 8);
  write("train/cats/notes.txt", "no picture");
  write("train/.hidden/x.png", "");
  write_picture("val/dogs/2.png", 200);
  const auto train = load_data(request(), Split::train), test = load_data(request(), Split::test);
  EXPECT_EQ(train->size(), 3);
  EXPECT_EQ(train->kind().classes, 2);
  Batch batch;
  EvaluationBatches(train, {.batch_size = 3, .threads = 2}).next(batch);
  EXPECT_THAT(batch.labels.span<std::int32_t>(), ElementsAre(0, 0, 1));
  ASSERT_EQ(batch.samples.shape(), (Shape{3, 3, 4, 4}));
  EXPECT_THAT(batch.samples.span<float>().subspan(0, 48), Each(FloatNear(120 / 255.F, 0.01F)));
  EXPECT_THAT(batch.samples.span<float>().subspan(48, 48), Each(FloatNear(80 / 255.F, 0.01F)));
  EvaluationBatches(test, {.batch_size = 1}).next(batch);
  EXPECT_THAT(batch.labels.span<std::int32_t>(), ElementsAre(1));
  EXPECT_EQ(description(*train),
            std::filesystem::path(folder_.path()).filename().string() +
                ", 3 images of 3 channels, 4 x 4, 2 classes (cats: 2, dogs: 1), left out: 1 .txt");
}

TEST_F(Data, ArePhotographsInFoldersBelowTheirClassToo) {
  write_picture("train/n01/images/1.JPEG", 40);
  write_picture("train/n02/images/1.JPEG", 80);
  write("train/n02/images/2.heic", "");
  std::filesystem::create_symlink("/nowhere/3.jpg", folder_ / "train/n01/3.jpg");
  const auto samples = load_data(request(), Split::train);
  EXPECT_EQ(samples->size(), 2);
  EXPECT_EQ(samples->kind().note, "left out: 1 .heic, 1 broken link");
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

TEST_F(Data, AreTransposedWhereTheirChannelsStandLast) {
  write("x_train.npy",
        npy("|u1", "(2, 2, 2, 3)", std::string("\0\1\2\3\4\5\6\7\x8\x9\xa\xb", 12) + std::string(12, '\0')));
  write("y_train.npy", npy("|u1", "(2,)", std::string("\0\1", 2)));
  const auto samples = load_data(request(), Split::train);
  EXPECT_EQ(samples->kind().shape, (Shape{3, 2, 2}));
  EXPECT_THAT(description(*samples), HasSubstr("[N,2,2,3] is taken as channels last"));
  Batch batch;
  EvaluationBatches(samples, {.batch_size = 1}).next(batch);
  std::vector<float> pixels;
  for (const float value : batch.samples.span<float>()) pixels.push_back(std::round(value * 255));
  EXPECT_THAT(pixels, ElementsAre(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11));
}

TEST_F(Data, TellWhatLiesBesideTheirClasses) {
  for (const char* name : {"train/a/1.png", "train/b/1.png", "train/2.png", "val/a/1.png", "test/b/1.png"})
    write_picture(name, 1);
  for (const char* name : {"train/a/x.heic", "train/a/y.heic", "train/b/w.bmp", "notes.md", "test/b/z.gif"})
    write(name, "x");
  EXPECT_EQ(load_data(request(), Split::train)->kind().note,
            "left out: 1 .bmp, 2 .heic, 1 .md, 1 picture in no folder of a class, val/ for testing while it "
            "trains, and "
            "test/ with --evaluate");
  EXPECT_EQ(load_data(request(), Split::test)->kind().note, "left out: 1 .gif");
}

TEST_F(Data, AreEvaluatedWithValWhileTheyAreLearntAndWithTestLater) {
  for (const char* name : {"train/a/1.png", "train/b/1.png", "val/a/1.png", "val/b/1.png", "test/b/1.png"})
    write_picture(name, 1);
  EXPECT_EQ(load_splits(request()).test->size(), 2);
  EXPECT_EQ(load_data(request(), Split::test)->size(), 1);
  std::filesystem::remove_all(folder_ / "val");
  EXPECT_EQ(load_splits(request()).test->size(), 1);
}

TEST_F(Data, AreAllForTestingWhereTheModelHasLearntFromOthers) {
  write_picture("dog/1.png", 1);
  write_picture("dog/2.png", 1);
  DataRequest other = request();
  other.classes = 2, other.class_names = {"cat", "dog"}, other.whole = true;
  const auto all = load_data(other, Split::test);
  EXPECT_THAT(all->class_counts(), ElementsAre(0, 2));
  EXPECT_EQ(all->kind().note, "all 2 pictures for testing");
}

TEST_F(Data, TakeEachUsualNameOfATestPart) {
  for (const char* part : {"validation", "valid", "val", "test"}) {
    SCOPED_TRACE(part);
    const std::string root = std::string(part) + "_set/";
    for (const char* one : {"a", "b"}) {
      write_picture(root + "train/" + one + "/1.png", 1);
      write_picture(root + part + "/" + one + "/1.png", 1);
    }
    EXPECT_EQ(load_data(request({3, 4, 4}, DType::f32, root), Split::test)->size(), 2);
  }
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

TEST_F(Data, CountFromZeroWhatIsLabelledFromOne) {
  write("x_train.npy", npy("<f4", "(3, 1)", std::string(12, '\0')));
  write("y_train.npy", npy("|u1", "(3, 1)", "\3\1\2"));
  write("x_test.npy", npy("<f4", "(1, 1)", std::string(4, '\0')));
  write("y_test.npy", npy("|u1", "(1,)", "\2"));
  const DataSplits splits = load_splits(request());
  EXPECT_THAT(splits.train->kind().class_names, ElementsAre("1", "2", "3"));
  EXPECT_THAT(description(*splits.train),
              HasSubstr("labels 1 to 3 are the classes (predictions name them so)"));
  EXPECT_THAT(splits.test->class_counts(), ElementsAre(0, 1, 0)) << "as in training";
  EXPECT_THAT(load_data(request(), Split::test)->class_counts(), ElementsAre(0, 1, 0)) << "alone, too";
  write("y_test.npy", npy("|u1", "(1,)", "\4"));
  EXPECT_THAT([&] { load_splits(request()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("label 4 is none of the 3 classes")));
  write("y_train.npy", npy("|u1", "(3,)", "\2\2\2"));
  EXPECT_THAT([&] { load_splits(request()); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("one class")));
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

TEST_F(Data, AreNumbersToFindWhereLabelsAreFloats) {
  write("x_train.npy", npy("<f4", "(2, 1)", std::string(8, '\0')));
  write("y_train.npy", npy("<f2", "(2, 2)", std::string("\0\x3e\0\xc0\0\x3c\0\0", 8)));  // 1.5 -2 1 0
  const auto samples = load_data(request(), Split::train);
  EXPECT_EQ(samples->kind().label_kind, LabelKind::numbers);
  EXPECT_EQ(samples->kind().classes, 2);
  EXPECT_THAT(description(*samples), HasSubstr("2 samples of 1 number, 2 numbers to find"));
  Batch batch;
  EvaluationBatches(samples, {.batch_size = 2}).next(batch);
  EXPECT_EQ(batch.labels.shape(), (Shape{2, 2}));
  EXPECT_THAT(batch.labels.span<float>(), ElementsAre(1.5F, -2, 1, 0));
  const SampleStatistics found = label_statistics_of(*samples);
  EXPECT_THAT(found.mean, ElementsAre(1.25F, -1));
  EXPECT_THAT(found.deviation, ElementsAre(0.25F, 1));
  write("y_train.npy", npy("<f4", "(2,)", std::string("\0\0\xc0\x7f\0\0\0\0", 8)));  // NaN
  EXPECT_THAT([&] { load_data(request(), Split::train); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("the number of sample 0 is nan")));
  write("y_train.npy", npy("|u1", "(2,)", "\3\4"));
  DataRequest asked = request();
  asked.label_kind = LabelKind::numbers;
  EXPECT_EQ(load_data(asked, Split::train)->kind().label_kind, LabelKind::numbers);
}

TEST_F(Data, NameTheFirstNumberOfAnArrayThatIsNotFinite) {
  write("y_train.npy", npy("|u1", "(2,)", std::string("\0\1", 2)));
  const auto refused = [&](const std::string& type, const std::string& numbers, const std::string& why) {
    write("x_train.npy", npy(type, "(2, 3)", numbers));
    EXPECT_THAT([&] { load_splits(request()); },
                ThrowsMessage<InvalidArgumentError>(
                    AllOf(HasSubstr("x_train.npy: "), HasSubstr(why), HasSubstr("all must be finite"))));
    EXPECT_THAT([&] { read_npy_samples(folder_ / "x_train.npy", {3}); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr(why)));
  };
  const std::string zeros(12, '\0'), nan("\0\0\xc0\x7f", 4), infinite("\0\0\x80\xff", 4);
  refused("<f4", zeros + std::string(4, '\0') + nan + infinite,
          "2 of 6 numbers are NaN or infinite as f32, the first one x[1,1], nan");
  refused("<f2", std::string(10, '\0') + std::string("\0\x7c", 2),
          "1 of 6 numbers are NaN or infinite as f32, the first one x[1,2], inf");
  refused("<f8", std::string("\x9c\x75\0\x88\x3c\xe4\x37\x7e", 8) + std::string(40, '\0'),
          "the first one x[0,0], inf");  // 1e300
}

TEST_F(Data, OfTruthValuesAreZeroAndOne) {
  write("x_train.npy", npy("|b1", "(3, 2)", std::string("\1\0\0\1\1\1", 6)));
  write("y_train.npy", npy("|u1", "(3,)", std::string("\0\1\0", 3)));
  const auto samples = load_data(request(), Split::train);
  Batch batch;
  EvaluationBatches(samples, {.batch_size = 3}).next(batch);
  EXPECT_EQ(batch.samples.shape(), (Shape{3, 2}));
  EXPECT_THAT(batch.samples.span<float>(), ElementsAre(1, 0, 0, 1, 1, 1));
}

TEST_F(Data, AreSeveralLabelsWhereWholeNumbersAreAllZeroOrOne) {
  write("x_train.npy", npy("<f4", "(2, 1)", std::string(8, '\0')));
  write("x_test.npy", npy("<f4", "(1, 1)", std::string(4, '\0')));
  write("y_test.npy", npy("|u1", "(1, 3)", std::string("\0\1\0", 3)));
  for (const char* type : {"|u1", "|b1", "|i1"}) {
    write("y_train.npy", npy(type, "(2, 3)", std::string("\1\0\0\1\1\0", 6)));
    const auto samples = load_data(request(), Split::train);
    EXPECT_EQ(samples->kind().label_kind, LabelKind::several) << type;
    EXPECT_EQ(samples->kind().classes, 3);
    EXPECT_THAT(samples->class_counts(), ElementsAre(2, 1, 0));
    EXPECT_THAT(description(*samples), HasSubstr("3 labels, several a sample (0: 2, 1: 1, 2: 0)"));
    Batch batch;
    EvaluationBatches(samples, {.batch_size = 2}).next(batch);
    EXPECT_EQ(batch.labels.shape(), (Shape{2, 3}));
    EXPECT_THAT(batch.labels.span<float>(), ElementsAre(1, 0, 0, 1, 1, 0));
    EXPECT_EQ(load_splits(request()).test->kind().label_kind, LabelKind::several);
  }
  DataRequest asked = request();
  asked.label_kind = LabelKind::several;
  write("y_train.npy", npy("<f4", "(2, 2)", std::string("\0\0\x80\x3f\0\0\0\0\0\0\x80\x3f\0\0\x80\x3f", 16)));
  EXPECT_EQ(load_data(request(), Split::train)->kind().label_kind, LabelKind::numbers);
  EXPECT_THAT(load_data(asked, Split::train)->class_counts(), ElementsAre(2, 1));
  const auto refused = [&](const std::string& type, const std::string& shape, const std::string& bytes,
                           const DataRequest& how, const std::string& why) {
    write("y_train.npy", npy(type, shape, bytes));
    EXPECT_THAT([&] { load_data(how, Split::train); },
                ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("y_train.npy"), HasSubstr(why))));
  };
  refused("|u1", "(2, 2)", std::string("\0\1\2\0", 4), asked,
          "label 2 of sample 1; --loss bce takes 0 and 1");
  refused("|u1", "(2,)", std::string("\0\1", 2), asked, "--loss bce is for several labels of a sample");
  refused("|u1", "(2, 2)", std::string("\0\1\2\0", 4), request(), "several labels of a sample 0 and 1");
}

TEST_F(Data, OfFoldersOfClassesKeepATenthForTesting) {
  for (const char* one : {"a", "b"})
    for (int i = 0; i < 15; ++i)
      write_picture(fmt::format("{}/{}.png", one, i), static_cast<std::uint8_t>(i));
  const DataSplits splits = load_splits(request());
  EXPECT_EQ(splits.train->size() + splits.test->size(), 30);
  EXPECT_EQ(splits.train->kind().note,
            fmt::format("{} of 30 pictures for testing by the seed 1", splits.test->size()));
  DataRequest asked = request();
  asked.seed = 2;
  EXPECT_NE(load_splits(asked).train->class_counts(), splits.train->class_counts());
  asked.classes = 2, asked.class_names = {"a", "b"}, asked.whole = true;
  EXPECT_EQ(load_data(asked, Split::test)->size(), 30);
  write_picture("train/a/1.png", 1);
  write_picture("train/b/1.png", 1);
  EXPECT_EQ(load_splits(request()).test, nullptr) << "who names a part for training has chosen";
}

// The greys of a split's pictures, which are all alike inside.
std::set<int> greys(const SampleSet& samples) {
  std::set<int> found;
  Batch batch;
  const auto all = std::shared_ptr<const SampleSet>(&samples, [](const SampleSet*) {});
  for (EvaluationBatches batches(all, {.batch_size = 1}); batches.next(batch);)
    found.insert(static_cast<int>(std::lround(batch.samples.span<float>()[0] * 255)));
  return found;
}

TEST_F(Data, ThatAreAddedLeaveTheOthersWhereTheyAre) {
  for (int i = 0; i < 60; ++i)
    write_picture(fmt::format("{}/{}.png", i % 2 == 0 ? "a" : "b", i), static_cast<std::uint8_t>(i));
  const std::set<int> before = greys(*load_splits(request()).test);
  for (int i = 60; i < 120; ++i)
    write_picture(fmt::format("{}/{}.png", i % 2 == 0 ? "a" : "b", 200 - i), static_cast<std::uint8_t>(i));
  std::set<int> after = greys(*load_splits(request()).test);
  EXPECT_GT(after.size(), before.size());
  std::erase_if(after, [](int grey) { return grey >= 60; });
  EXPECT_EQ(after, before);
}

TEST_F(Data, HaveNoTestSplitOfTooFewPicturesInFoldersOfClasses) {
  write_picture("a/1.png", 1);
  write_picture("b/1.png", 2);
  EXPECT_EQ(load_data(request({1, 4, 4}), Split::train)->kind().classes, 2);
  EXPECT_EQ(load_data(request(), Split::test), nullptr);
}

TEST_F(Data, NameAClassThatOnlyTestingHasAndOneWithoutPictures) {
  write_picture("train/a/1.png", 1);
  write_picture("test/b/1.png", 1);
  EXPECT_THAT([&] { load_data(request(), Split::test); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("test/b"), HasSubstr("same folders"))));
  write("train/empty/readme", "");
  EXPECT_THAT([&] { load_data(request(), Split::train); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("train/empty: a class without images")));
}

TEST_F(Data, NameThePictureThatIsDamagedWhenItIsRead) {
  write_picture("train/a/1.png", 1);
  write("train/a/2.png", "no picture");
  write_picture("train/b/1.png", 1);
  Batches batches(load_data(request(), Split::train), {.batch_size = 3, .threads = 2});
  Batch batch;
  EXPECT_THAT([&] { batches.next(batch); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("train/a/2.png")));
}

TEST_F(Data, AreTheSameBatchesOnAnyNumberOfThreadsAndAfterResuming) {
  const char* const endings[] = {".png", ".jpg", ".webp"};
  for (int i = 0; i < 12; ++i)
    write_picture("train/" + std::to_string(i % 3) + "/" + std::to_string(i) + endings[i / 4],
                  static_cast<std::uint8_t>(20 * i + 1), 40, 60);
  DataRequest augmented = request({3, 8, 8});
  augmented.augmentation = augmentation_from("usual,crop,rotate,color");
  const auto samples = load_data(augmented, Split::train);
  Batches one(samples, {.batch_size = 4}), three(samples, {.batch_size = 4, .threads = 3}),
      resumed(samples, {.batch_size = 4});
  Batch expected, found;
  for (int step = 0; step < 5; ++step) {
    one.next(expected);
    three.next(found);
    EXPECT_TRUE(std::ranges::equal(found.samples.span<float>(), expected.samples.span<float>())) << step;
  }
  resumed.seek(position_from_json(to_json(one.position())));
  one.next(expected);
  resumed.next(found);
  EXPECT_TRUE(std::ranges::equal(found.samples.span<float>(), expected.samples.span<float>()));
  EXPECT_TRUE(std::ranges::equal(found.labels.span<std::int32_t>(), expected.labels.span<std::int32_t>()));
}

TEST_F(Data, ArePairsOfArrays) {
  write("x_train.npy",
        npy("|u1", "(2, 2, 3)", std::string("\x00\x33\x66\x99\xcc\xff\x00\x00\x00\x00\x00\x00", 12)));
  write("y_train.npy", npy("<i8", "(2,)", std::string("\x05\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0", 16)));
  write("x_test.npy", npy("<f4", "(1, 1, 2, 3)", std::string(24, '\0')));
  write("y_test.npy", npy("|u1", "(1,)", "\x01"));
  const auto train = load_data(request(), Split::train), test = load_data(request(), Split::test);
  EXPECT_EQ(train->kind().shape, (Shape{1, 2, 3})) << "a third dimension is no channel";
  EXPECT_EQ(train->kind().classes, 6);
  EXPECT_EQ(test->kind().classes, 6) << "as in training";
  Batch batch;
  EvaluationBatches(train, {.batch_size = 2}).next(batch);
  EXPECT_THAT(batch.samples.span<float>().subspan(0, 6), ElementsAre(0, 0.2F, 0.4F, 0.6F, 0.8F, 1));
  EXPECT_THAT(batch.labels.span<std::int32_t>(), ElementsAre(5, 2));
}

TEST_F(Data, NameTheArraysThatDoNotFit) {
  write("x_train.npy", npy("<f4", "(2, 1)", std::string(8, '\0')));
  write("y_train.npy", npy("|u1", "(3,)", "123"));
  EXPECT_THAT([&] { load_data(request(), Split::train); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("x_train.npy"), HasSubstr("3 labels of"), HasSubstr("y_train.npy"))));
  write("y_train.npy", npy("<f4", "(2,)", std::string(8, '\0')));
  DataRequest classes = request();
  classes.label_kind = LabelKind::one_class;
  EXPECT_THAT(
      [&] { load_data(classes, Split::train); },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("y_train.npy"), HasSubstr("whole numbers"))));
  write("x_test.npy", npy("<f4", "(1, 1)", std::string(4, '\0')));
  EXPECT_THAT([&] { load_data(request(), Split::test); },
              ThrowsMessage<NotFoundError>(HasSubstr("y_test.npy")));
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
