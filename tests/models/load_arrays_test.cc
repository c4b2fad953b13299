// What --data names: pairs of NumPy's arrays.
#include <kolo/models/data.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/models/batches.h>

#include "tests/models/data_folder.h"
#include "tests/models/npy_file.h"

namespace kolo::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Arrays : public DataFolder {};

TEST_F(Arrays, AreTransposedWhereTheirChannelsStandLast) {
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

TEST_F(Arrays, CountFromZeroWhatIsLabelledFromOne) {
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

TEST_F(Arrays, AreNumbersToFindWhereLabelsAreFloats) {
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

TEST_F(Arrays, NameTheFirstNumberOfAnArrayThatIsNotFinite) {
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

TEST_F(Arrays, OfTruthValuesAreZeroAndOne) {
  write("x_train.npy", npy("|b1", "(3, 2)", std::string("\1\0\0\1\1\1", 6)));
  write("y_train.npy", npy("|u1", "(3,)", std::string("\0\1\0", 3)));
  const auto samples = load_data(request(), Split::train);
  Batch batch;
  EvaluationBatches(samples, {.batch_size = 3}).next(batch);
  EXPECT_EQ(batch.samples.shape(), (Shape{3, 2}));
  EXPECT_THAT(batch.samples.span<float>(), ElementsAre(1, 0, 0, 1, 1, 1));
}

TEST_F(Arrays, AreSeveralLabelsWhereWholeNumbersAreAllZeroOrOne) {
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

TEST_F(Arrays, AreWarnedOfWhereTheirChannelsMayStandElsewhere) {
  write("y_train.npy", npy("|u1", "(2,)", std::string("\0\1", 2)));
  const auto warnings = [&](const std::string& shape, std::size_t bytes) {
    write("x_train.npy", npy("|u1", shape, std::string(bytes, '\0')));
    return load_data(request(), Split::train)->kind().warnings;
  };
  EXPECT_THAT(warnings("(2, 8, 8, 4)", 512),
              ElementsAre(AllOf(HasSubstr("x_train.npy: [N,8,8,4] is taken for images of 8 channels, 8 x 4"),
                                HasSubstr("np.moveaxis(x, 3, 1)"))));
  EXPECT_THAT(warnings("(2, 8, 3, 8)", 384), ElementsAre(HasSubstr("np.moveaxis(x, 2, 1)")));
  for (const auto& [shape, bytes] :
       {std::pair("(2, 3, 8, 8)", 384), {"(2, 8, 8, 3)", 384}, {"(2, 8, 8)", 128}})
    EXPECT_THAT(warnings(shape, static_cast<std::size_t>(bytes)), testing::IsEmpty()) << shape;
}

TEST_F(Arrays, OfOneLabelASampleAreWarnedOf) {
  write("x_train.npy", npy("<f4", "(2, 1)", std::string(8, '\0')));
  write("y_train.npy", npy("|u1", "(2, 3)", std::string("\1\0\0\0\1\0", 6)));
  EXPECT_THAT(
      load_data(request(), Split::train)->kind().warnings,
      ElementsAre(HasSubstr("each sample has exactly one of 3 labels; if these are classes, give their "
                            "numbers (numpy: y.argmax(1))")));
  DataRequest asked = request();
  asked.label_kind = LabelKind::several;
  EXPECT_THAT(load_data(asked, Split::train)->kind().warnings, testing::IsEmpty());
  write("y_train.npy", npy("|u1", "(2, 3)", std::string("\1\1\0\0\1\0", 6)));
  EXPECT_THAT(load_data(request(), Split::train)->kind().warnings, testing::IsEmpty());
}

TEST_F(Arrays, OfClassesCountFromZero) {
  write("x_train.npy", npy("<f4", "(2, 1)", std::string(8, '\0')));
  write("y_train.npy", npy("|i1", "(2,)", std::string("\1\xff", 2)));
  EXPECT_THAT(
      [&] { load_data(request(), Split::train); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("label -1 of sample 1; classes count from 0 (numpy: ")));
}

TEST_F(Arrays, ArePairsOfArrays) {
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

TEST_F(Arrays, NameTheArraysThatDoNotFit) {
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

}  // namespace
}  // namespace kolo::models
