#include <kolo/models/samples.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include <kolo/core/base/error.h>
#include <kolo/models/batches.h>
#include <kolo/models/data.h>

namespace kolo::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;
using testing::ThrowsMessage;

TEST(ArraySamples, GiveTheirRowsAndCountTheirClasses) {
  const auto samples = array_samples("rows", Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}),
                                     Tensor::of<std::int32_t>({3}, {0, 4, 1}));
  EXPECT_EQ(samples->kind().classes, 5);
  Batch batch;
  EvaluationBatches batches(samples, {.batch_size = 2});
  ASSERT_TRUE(batches.next(batch));
  EXPECT_EQ(batch.samples.shape(), (Shape{2, 2}));
  EXPECT_THAT(batch.samples.span<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(batch.labels.span<std::int32_t>(), ElementsAre(0, 4));
}

// What a GPU divides by 255 itself.
TEST(Samples, ThatArePixelsCanStayBytes) {
  const Dataset dataset = generated_digits(1, 0, 40);
  const auto both = [](const std::shared_ptr<const SampleSet>& samples) {
    Batch scaled, bytes;
    Batches(samples, {.batch_size = 40}).next(scaled);
    Batches(samples, {.batch_size = 40, .as_pixels = true}).next(bytes);
    EXPECT_EQ(bytes.samples.dtype(), samples->kind().are_pixels ? DType::u8 : DType::f32);
    EXPECT_EQ(bytes.samples.shape(), scaled.samples.shape());
    std::int64_t different = 0;
    for (std::int64_t i = 0; samples->kind().are_pixels && i < scaled.samples.elements(); ++i)
      different += static_cast<float>(bytes.samples.data<std::uint8_t>()[i]) / 255.0F !=
                   scaled.samples.data<float>()[i];
    EXPECT_EQ(different, 0);
    return samples->kind().are_pixels;
  };
  EXPECT_TRUE(both(image_samples(dataset)));
  EXPECT_TRUE(both(image_samples(dataset, augmentation_from("crop,shift,flip"))));
  EXPECT_FALSE(both(image_samples(dataset, augmentation_from("rotate"))));
  EXPECT_FALSE(both(image_samples(dataset, augmentation_from("brightness"))));
  const Tensor labels = Tensor::zeros(DType::i32, {40});
  EXPECT_TRUE(both(array_samples("bytes", dataset.images, labels)));
  EXPECT_FALSE(both(array_samples("numbers", Tensor::zeros(DType::f32, {40, 3}), labels)));
}

TEST(ArraySamples, ScaleBytesToOne) {
  const auto samples = array_samples("bytes", Tensor::of<std::uint8_t>({1, 3}, {0, 51, 255}),
                                     Tensor::of<std::int32_t>({1}, {0}));
  Batch batch;
  EvaluationBatches(samples, {.batch_size = 1}).next(batch);
  EXPECT_THAT(batch.samples.span<float>(), ElementsAre(0, 0.2F, 1));
}

TEST(ArraySamples, NameTheLabelThatIsNone) {
  const auto labelled = [](std::int32_t label, std::int64_t classes) {
    return [label, classes] {
      array_samples("rows", Tensor::of<float>({2, 1}, {1, 2}), Tensor::of<std::int32_t>({2}, {0, label}),
                    classes);
    };
  };
  EXPECT_THAT(labelled(-1, 0), ThrowsMessage<InvalidArgumentError>(HasSubstr("rows: label -1 of sample 1")));
  EXPECT_THAT(labelled(3, 3),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("label 3 of sample 1; labels are 0 to 2")));
  EXPECT_NO_THROW(labelled(2, 3)());
}

TEST(ArraySamples, RefuseShapesThatDoNotFit) {
  const Tensor three = Tensor::of<std::int32_t>({3}, {0, 1, 2});
  EXPECT_THAT(
      [&] {
        array_samples("rows", Tensor::zeros(DType::f32, {2, 4}), three);
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[2,4]"), HasSubstr("[3]"))));
  EXPECT_THROW(array_samples("rows", Tensor::zeros(DType::f32, {3}), three), InvalidArgumentError);
  EXPECT_THROW(array_samples("rows", Tensor::zeros(DType::f64, {3, 1}), three), InvalidArgumentError);
  EXPECT_THROW(array_samples("rows", Tensor::zeros(DType::f32, {0, 2}), Tensor(DType::i32, {0})),
               InvalidArgumentError);
}

TEST(Statistics, AreThoseOfEachColumnOfATable) {
  const auto samples = array_samples("rows", Tensor::of<float>({4, 2}, {1, 7, 2, 7, 3, 7, 6, 7}),
                                     Tensor::of<std::int32_t>({4}, {0, 0, 0, 0}));
  const SampleStatistics found = statistics_of(*samples);
  EXPECT_THAT(found.mean, ElementsAre(3, 7));
  EXPECT_THAT(found.deviation,
              Pointwise(FloatNear(1e-6F), {std::sqrt(3.5F), 1.0F}));  // 1 for what does not vary
}

TEST(Statistics, KeepSmallDifferencesOfLargeNumbers) {
  const auto samples = array_samples("rows", Tensor::of<float>({4, 1}, {1e7F, 1e7F + 2, 1e7F + 4, 1e7F + 6}),
                                     Tensor::of<std::int32_t>({4}, {0, 0, 0, 0}));
  const SampleStatistics found = statistics_of(*samples);
  EXPECT_THAT(found.mean, ElementsAre(1e7F + 3));
  EXPECT_THAT(found.deviation, Pointwise(FloatNear(1e-6F), {std::sqrt(5.0F)}));
}

TEST(Statistics, AreThoseOfEachChannelOfImages) {
  Tensor x = Tensor::of<float>({2, 2, 1, 2}, {0, 2, 10, 30, 0, 2, 10, 30});
  const SampleStatistics found =
      statistics_of(*array_samples("images", x, Tensor::of<std::int32_t>({2}, {0, 1})));
  EXPECT_THAT(found.mean, ElementsAre(1, 20));
  EXPECT_THAT(found.deviation, ElementsAre(1, 10));
}

TEST(Statistics, TakeSamplesFromAllOverTheSet) {
  Tensor x = Tensor::zeros(DType::f32, {1000, 1});
  for (int i = 0; i < 1000; ++i) x.data<float>()[i] = static_cast<float>(i);
  const auto samples = array_samples("ramp", x, Tensor::zeros(DType::i32, {1000}));
  EXPECT_THAT(statistics_of(*samples, 10).mean, ElementsAre(450));  // 0, 100, … 900
}

TEST(Statistics, RefuseTokens) {
  const auto text = text_samples("abc", std::make_shared<const Text>("abcabc"), {.length = 2});
  EXPECT_THAT([&] { statistics_of(*text); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("abc: tokens")));
}

}  // namespace
}  // namespace kolo::models
