// What --data names: folders of photographs, a folder for each class.
#include <kolo/models/data.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/models/batches.h>

#include "tests/models/data_folder.h"

namespace kolo::models {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Pictures : public DataFolder {};

TEST_F(Pictures, ArePhotographsWhereAFolderForEachClassHoldsThem) {
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

TEST_F(Pictures, ArePhotographsInFoldersBelowTheirClassToo) {
  write_picture("train/n01/images/1.JPEG", 40);
  write_picture("train/n02/images/1.JPEG", 80);
  write("train/n02/images/2.heic", "");
  std::filesystem::create_symlink("/nowhere/3.jpg", folder_ / "train/n01/3.jpg");
  const auto samples = load_data(request(), Split::train);
  EXPECT_EQ(samples->size(), 2);
  EXPECT_EQ(samples->kind().note, "left out: 1 .heic, 1 broken link");
}

TEST_F(Pictures, TellWhatLiesBesideTheirClasses) {
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

TEST_F(Pictures, AreEvaluatedWithValWhileTheyAreLearntAndWithTestLater) {
  for (const char* name : {"train/a/1.png", "train/b/1.png", "val/a/1.png", "val/b/1.png", "test/b/1.png"})
    write_picture(name, 1);
  EXPECT_EQ(load_splits(request()).test->size(), 2);
  EXPECT_EQ(load_data(request(), Split::test)->size(), 1);
  std::filesystem::remove_all(folder_ / "val");
  EXPECT_EQ(load_splits(request()).test->size(), 1);
}

TEST_F(Pictures, AreAllForTestingWhereTheModelHasLearntFromOthers) {
  write_picture("dog/1.png", 1);
  write_picture("dog/2.png", 1);
  DataRequest other = request();
  other.classes = 2, other.class_names = {"cat", "dog"}, other.whole = true;
  const auto all = load_data(other, Split::test);
  EXPECT_THAT(all->class_counts(), ElementsAre(0, 2));
  EXPECT_EQ(all->kind().note, "all 2 pictures for testing");
}

TEST_F(Pictures, TakeEachUsualNameOfATestPart) {
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

TEST_F(Pictures, OfFoldersOfClassesKeepATenthForTesting) {
  for (int i = 0; i < 30; ++i)
    write_picture(fmt::format("{}/{}.png", i < 15 ? "a" : "b", i), static_cast<std::uint8_t>(i));
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

TEST_F(Pictures, ThatAreAddedLeaveTheOthersWhereTheyAre) {
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

TEST_F(Pictures, HaveNoTestSplitOfTooFewPicturesInFoldersOfClasses) {
  write_picture("a/1.png", 1);
  write_picture("b/1.png", 2);
  EXPECT_EQ(load_data(request({1, 4, 4}), Split::train)->kind().classes, 2);
  EXPECT_EQ(load_data(request(), Split::test), nullptr);
}

TEST_F(Pictures, NameAClassThatOnlyTestingHasAndOneWithoutPictures) {
  write_picture("train/a/1.png", 1);
  write_picture("test/b/1.png", 1);
  EXPECT_THAT([&] { load_data(request(), Split::test); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("test/b"), HasSubstr("same folders"))));
  write("train/empty/readme", "");
  EXPECT_THAT([&] { load_data(request(), Split::train); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("train/empty: a class without images")));
}

TEST_F(Pictures, NameThePictureThatIsDamagedWhenItIsRead) {
  write_picture("train/a/1.png", 1);
  write("train/a/2.png", "no picture");
  write_picture("train/b/1.png", 1);
  Batches batches(load_data(request(), Split::train), {.batch_size = 3, .threads = 2});
  Batch batch;
  EXPECT_THAT([&] { batches.next(batch); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("train/a/2.png")));
}

TEST_F(Pictures, AreTheSameBatchesOnAnyNumberOfThreadsAndAfterResuming) {
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

}  // namespace
}  // namespace kolo::models
