// What may not be as the owner of the data thinks: folders of another level, classes that are hardly there,
// numbers of another scale.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/models/batches.h>
#include <kolo/models/data_splits.h>

#include "tests/models/data_folder.h"

namespace kolo::models {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::ThrowsMessage;

class Warnings : public DataFolder {
 protected:
  std::vector<std::string> warnings() { return load_data(request(), Split::train)->kind().warnings; }
};

TEST_F(Warnings, TellOfClassesThatHoldFoldersOfTheirOwn) {
  for (const char* name : {"pets/cats/1.png", "pets/dogs/1.png", "other/1.png"}) write_picture(name, 1);
  EXPECT_THAT(warnings(), ElementsAre(AllOf(
                              HasSubstr("/pets is taken for one class"), HasSubstr("2 folders (cats, dogs)"),
                              HasSubstr("--data " + folder_.path() + "/pets takes these for classes"))));
  write_picture("pets/2.png", 1);
  EXPECT_THAT(warnings(), IsEmpty()) << "a picture in the folder itself: it is a class";
}

TEST_F(Warnings, TellOfSplitsThatAreCalledOtherwise) {
  for (const char* split : {"seg_train", "seg_test"})
    for (const char* one : {"cat", "dog"}) write_picture(fmt::format("{}/{}/1.png", split, one), 1);
  EXPECT_THAT(warnings(),
              ElementsAre(AllOf(HasSubstr("hold the same folders (cat, dog)"), HasSubstr("train and test"))));
}

TEST_F(Warnings, AreNoneOfFoldersBelowAClass) {
  write_picture("train/n01/images/1.png", 40);
  write_picture("train/n02/images/1.png", 80);
  EXPECT_THAT(warnings(), IsEmpty());
}

TEST_F(Warnings, HelpWhereOneClassAloneIsRefused) {
  for (const char* one : {"cats", "dogs"}) write_picture(fmt::format("pets/{}/1.png", one), 1);
  EXPECT_THAT([&] { warnings(); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("one class, \"pets\""), HasSubstr("/pets takes these for classes"))));
}

TEST_F(Warnings, NameTheModelsThatTakePictures) {
  write_picture("a/1.png", 1);
  write_picture("b/1.png", 1);
  EXPECT_THAT([&] { load_data(request({784}), Split::train); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("lenet (28 x 28 in grey)"),
                                                        HasSubstr("resnet20 (32 x 32 in colour)"),
                                                        Not(HasSubstr("mlp")))));
}

TEST_F(Warnings, TellAModelOfTextsWhatLiesInAFolder) {
  const auto refused = [&](const std::string& folder, const std::string& why) {
    EXPECT_THAT([&] { load_data(request({8}, DType::i32, folder), Split::train); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr(why)));
  };
  write_picture("pets/a/1.png", 1);
  write_picture("pets/b/1.png", 1);
  write("tables/train.csv", "a,label\n1,0\n");
  write("below/one/a.txt", "a");
  refused("pets", "/pets: images, and the model learns from a text; models for images are ");
  refused("tables", "/tables: tables, and the model learns from a text; --model mlp takes rows of numbers");
  refused("below", "lies no file, but 1 folder");
  EXPECT_THAT(
      [&] { load_data(request({2}, DType::f32, "below/one/a.txt"), Split::train); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("--model gpt and --model lstm learn from a text")));
}

TEST_F(Warnings, TakeTheOnlyFileOfAFolderForTheText) {
  write("books/one.txt", std::string(200, 'a') + std::string(200, 'b'));
  EXPECT_EQ(load_data(request({8}, DType::i32, "books"), Split::train)->kind().classes, 2);
  write("books/two.txt", "b");
  EXPECT_THAT([&] { load_data(request({8}, DType::i32, "books"), Split::train); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("--data must name a file"), HasSubstr("2 files lie, such as one.txt"))));
}

TEST_F(Warnings, OfDrawnSamplesNameThem) {
  for (int i = 0; i < 40; ++i) write_picture(fmt::format("{}/{}.png", i % 2 == 0 ? "a" : "b", i), 1);
  const DataSplits splits = load_splits(request());
  EXPECT_EQ(std::ssize(splits.drawn), splits.test->size());
  for (const std::string& name : splits.drawn) EXPECT_TRUE(std::filesystem::exists(folder_ / name)) << name;
  std::string one = "a,label\n", two = one;
  for (int i = 0; i < 60; ++i) (i < 20 ? one : two) += fmt::format("{},{}\n", i, i % 2);
  write("t/1.csv", one);
  write("t/2.csv", two);
  const DataSplits rows = load_splits(request({1}, DType::f32, "t"));
  ASSERT_EQ(std::ssize(rows.drawn), rows.test->size());
  Batch batch;
  EvaluationBatches batches(rows.test, {.batch_size = 1});
  for (const std::string& name : rows.drawn) {
    ASSERT_TRUE(batches.next(batch));
    const int row = static_cast<int>(batch.samples.span<float>()[0]);
    EXPECT_EQ(name, row < 20 ? fmt::format("1.csv:{}", row + 2) : fmt::format("2.csv:{}", row - 20 + 2));
  }
}

TEST_F(Warnings, AreNotNeededOfPicturesWhichPredictionReadsAsTrainingDoes) {
  std::vector<std::uint8_t> pixels;
  CounterRandom random(1, RandomPurpose::digit_noise, 0);
  for (int i = 0; i < 3 * 200 * 300; ++i) pixels.push_back(static_cast<std::uint8_t>(random.below(256)));
  write("a/1.jpg", jpeg_bytes(200, 300, 3, pixels));
  write("b/1.png", png_bytes(200, 300, 3, pixels));
  const auto trained = load_data(request(), Split::train);
  const auto predicted =
      unlabelled_samples({folder_ / "a/1.jpg", folder_ / "b/1.png"}, trained->kind().shape).samples;
  Batch one, other;
  EvaluationBatches(trained, {.batch_size = 2}).next(one);
  EvaluationBatches(predicted, {.batch_size = 2}).next(other);
  EXPECT_TRUE(std::ranges::equal(one.samples.span<float>(), other.samples.span<float>()));
}

std::vector<std::uint64_t> keys(std::uint64_t count) {
  std::vector<std::uint64_t> all(count);
  for (std::uint64_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

TEST(Drawn, LeaveASampleOfEachClassInTraining) {
  const std::vector<std::uint64_t> all = keys(300);
  const std::vector<std::int64_t> anyhow = detail::drawn_for_testing(all, 1);
  std::vector<std::int32_t> labels(all.size(), 0);
  // Of class 1 all would be drawn, and of class 2 the only one.
  for (int i = 0; i < 3; ++i) labels[static_cast<std::size_t>(anyhow[static_cast<std::size_t>(i)])] = 1;
  labels[static_cast<std::size_t>(anyhow[3])] = 2;
  const std::vector<std::int64_t> drawn = detail::drawn_for_testing(all, 1, labels);
  EXPECT_EQ(drawn.size(), anyhow.size() - 2);
  EXPECT_THAT(drawn, Not(Contains(anyhow[3])));
  for (const std::int64_t one : drawn) EXPECT_THAT(anyhow, Contains(one)) << "the others stay where they are";
}

TEST(Drawn, AreNotTheOnlyOnesOfTheirClass) {
  std::vector<std::int32_t> labels(12);
  for (std::int32_t i = 0; i < 12; ++i) labels[static_cast<std::size_t>(i)] = i;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_THAT(detail::drawn_for_testing(keys(12), seed, labels), IsEmpty()) << seed;
  labels.assign(12, 0);
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_THAT(detail::drawn_for_testing(keys(12), seed, labels), Not(IsEmpty())) << seed;
}

}  // namespace
}  // namespace kolo::models
