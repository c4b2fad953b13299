
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/models/batches.h>
#include <kolo/models/samples.h>
#include <kolo/models/samples_internal.h>

namespace kolo::models {
namespace {

using detail::ImageChange;
using testing::AllOf;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;
using testing::ThrowsMessage;
using Color = ImageChange::Color;

// [channels, 4, 5]; its pixels look random, and follow from their places.
std::vector<float> changed(const ImageChange& change, std::int64_t channels = 3) {
  std::vector<std::uint8_t> pixels;
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t y = 0; y < 4; ++y)
      for (std::int64_t x = 0; x < 5; ++x)
        pixels.push_back(static_cast<std::uint8_t>((37 * y + 91 * x + 53 * c + 11 * x * y) % 256));
  std::vector<float> image(pixels.size());
  detail::write_image(pixels.data(), {channels, 4, 5}, change, image.data());
  return image;
}

std::vector<float> channel(const std::vector<float>& image, std::ptrdiff_t c) {
  return {image.begin() + 20 * c, image.begin() + 20 * (c + 1)};
}

// torchvision 0.14.1, rotate(image, degrees, InterpolationMode.BILINEAR) of a tensor of floats.
TEST(WriteImage, TurnsAsTorchvisionDoes) {
  const std::vector<float> turned = changed({.degrees = 30});
  EXPECT_THAT(channel(turned, 0),
              Pointwise(FloatNear(2e-5F),
                        {0.073003F, 0.471271F, 0.28143F,  0.497551F, 0.312459F, 0.196053F, 0.610007F,
                         0.759902F, 0.480025F, 0.086194F, 0.142506F, 0.578029F, 0.348406F, 0.557227F,
                         0.620882F, 0.135204F, 0.508693F, 0.752162F, 0.322682F, 0.177142F}));
  EXPECT_THAT(channel(turned, 2),
              Pointwise(FloatNear(2e-5F),
                        {0.152919F, 0.140589F, 0.446136F, 0.479734F, 0.112279F, 0.61174F,  0.640213F,
                         0.456272F, 0.342106F, 0.483861F, 0.558192F, 0.609442F, 0.479487F, 0.354472F,
                         0.516588F, 0.350508F, 0.538898F, 0.414907F, 0.532414F, 0.06255F}));
  EXPECT_THAT(changed({.degrees = -75}, 1),
              Pointwise(FloatNear(2e-5F),
                        {0.431872F, 0.431975F, 0.384418F, 0.315291F, 0.068621F, 0.642644F, 0.655621F,
                         0.637576F, 0.723453F, 0.303295F, 0.185091F, 0.415376F, 0.485463F, 0.408491F,
                         0.046653F, 0.154149F, 0.750575F, 0.38148F,  0.600559F, 0.393629F}));
}

TEST(WriteImage, TurnsThenMovesThenMirrors) {
  const std::vector<float> turned = changed({.degrees = 30}),
                           all = changed({.degrees = 30, .down = 1, .right = -2, .mirrored = true});
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t y = 0; y < 4; ++y)
      for (std::size_t x = 0; x < 5; ++x) {
        const std::size_t col = 4 - x + 2;
        EXPECT_EQ(all[20 * c + 5 * y + x], y >= 1 && col < 5 ? turned[20 * c + 5 * (y - 1) + col] : 0);
      }
}

// torchvision 0.14.1, adjust_brightness, adjust_contrast and adjust_saturation of a tensor of floats.
TEST(WriteImage, ChangesColoursAsTorchvisionDoes) {
  const auto second = [](double brightness, double contrast, double saturation) {
    return channel(changed({.factors = {brightness, contrast, saturation}}), 1);
  };
  EXPECT_THAT(second(1.3, 1, 1),
              Pointwise(FloatNear(2e-5F),
                        {0.270196F, 0.734118F, 1.0F,      0.356863F, 0.820784F, 0.458824F, 0.978823F,
                         0.193725F, 0.713726F, 1.0F,      0.647451F, 1.0F,      0.49451F,  1.0F,
                         0.341569F, 0.836078F, 0.163137F, 0.795294F, 0.122353F, 0.75451F}));
  EXPECT_THAT(second(1, 0.6, 1),
              Pointwise(FloatNear(2e-5F),
                        {0.324436F, 0.538554F, 0.752672F, 0.364436F, 0.578554F, 0.411495F, 0.651495F,
                         0.289142F, 0.529142F, 0.769142F, 0.498554F, 0.764436F, 0.427966F, 0.693848F,
                         0.357377F, 0.585613F, 0.275025F, 0.566789F, 0.256201F, 0.547966F}));
  EXPECT_THAT(second(1, 1, 1.5),
              Pointwise(FloatNear(2e-5F),
                        {0.227069F, 0.583949F, 0.998053F, 0.293739F, 0.650619F, 0.372174F, 0.772194F,
                         0.018206F, 0.568262F, 1.0F,      0.517279F, 1.0F,      0.399626F, 0.900009F,
                         0.281973F, 0.662385F, 0.0F,      0.63101F,  0.0F,      0.599636F}));
  EXPECT_THAT(channel(changed({.order = {Color::saturation, Color::brightness, Color::contrast},
                               .factors = {1.3, 0.6, 1.5}}),
                      2),
              Pointwise(FloatNear(2e-5F),
                        {0.657213F, 0.836923F, 0.236923F, 0.709216F, 0.836923F, 0.770395F, 0.836923F,
                         0.4943F,   0.836923F, 0.236923F, 0.836923F, 0.236923F, 0.791808F, 0.236923F,
                         0.700039F, 0.836923F, 0.475946F, 0.836923F, 0.451475F, 0.836923F}));
  EXPECT_THAT(
      changed({.factors = {1, 1.4, 0.3}}, 1),
      Pointwise(FloatNear(2e-5F), {0.0F, 0.316235F, 0.815843F, 0.0F,      0.409569F, 0.019765F, 0.579765F,
                                   1.0F, 0.294275F, 0.854274F, 0.222902F, 0.843294F, 0.058196F, 0.678588F,
                                   0.0F, 0.426039F, 1.0F,      0.382118F, 1.0F,      0.338196F}));
}

// Ranges of torchvision 0.14.1's RandomResizedCrop(scale=(0.25, 1), ratio=(3/4, 4/3)).
TEST(DrawCrop, KeepsToTheRangesOfAreaAndRatioAndReachesThem) {
  CounterRandom random(7, RandomPurpose::sample_changes, 1);
  double least = 1, most = 0, narrow = 9, wide = 0;
  std::set<double> tops;
  for (int i = 0; i < 2000; ++i) {
    const PictureBox box = detail::draw_crop(0.25, 300, 400, random);
    const double area = box.height * box.width / (300 * 400), ratio = box.width / box.height;
    least = std::min(least, area), most = std::max(most, area);
    narrow = std::min(narrow, ratio), wide = std::max(wide, ratio);
    EXPECT_EQ(box.height, std::floor(box.height));
    EXPECT_TRUE(box.top >= 0 && box.top + box.height <= 300 && box.left >= 0 && box.left + box.width <= 400);
    tops.insert(box.top);
  }
  EXPECT_NEAR(least, 0.25, 0.005);
  EXPECT_NEAR(most, 1, 0.05);
  EXPECT_NEAR(narrow, 3.0 / 4, 0.01);
  EXPECT_NEAR(wide, 4.0 / 3, 0.01);
  EXPECT_GT(tops.size(), 100U);
}

TEST(DrawCrop, TakesTheMiddleOfAPictureThatIsTooNarrow) {
  CounterRandom random(7, RandomPurpose::sample_changes, 1);
  const PictureBox wide = detail::draw_crop(1, 30, 1000, random),
                   high = detail::draw_crop(1, 1000, 30, random);
  EXPECT_EQ((std::vector{wide.top, wide.left, wide.height, wide.width}),
            (std::vector<double>{0, 480, 30, 40}));
  EXPECT_EQ((std::vector{high.top, high.left, high.height, high.width}),
            (std::vector<double>{480, 0, 40, 30}));
  const PictureBox point = detail::draw_crop(0.08, 1, 1, random);
  EXPECT_EQ((std::vector{point.height, point.width}), (std::vector<double>{1, 1}));
}

TEST(DrawChange, DrawsWithinTheRangesAndTheColoursInEachOrder) {
  const Augmentation all = augmentation_from("rotate:20,color:0.5,brightness:2");
  CounterRandom random(3, RandomPurpose::sample_changes, 9);
  std::set<std::array<Color, 3>> orders;
  double most = 0, least_brightness = 9, most_brightness = 0, least_contrast = 9, most_contrast = 0;
  for (int i = 0; i < 1000; ++i) {
    const ImageChange change = detail::draw_change(all, 3, &random);
    EXPECT_TRUE(change.down == 0 && change.right == 0 && !change.mirrored);
    orders.insert(change.order);
    most = std::max(most, std::abs(change.degrees));
    least_brightness = std::min(least_brightness, change.factors[0]);
    most_brightness = std::max(most_brightness, change.factors[0]);
    least_contrast = std::min(least_contrast, change.factors[1]);
    most_contrast = std::max(most_contrast, change.factors[1]);
  }
  EXPECT_EQ(orders.size(), 6U);
  EXPECT_NEAR(most, 20, 0.2);
  EXPECT_LE(most, 20);
  EXPECT_NEAR(least_brightness, 0, 0.02);
  EXPECT_NEAR(most_brightness, 3, 0.02);
  EXPECT_NEAR(least_contrast, 0.5, 0.01);
  EXPECT_NEAR(most_contrast, 1.5, 0.01);
}

TEST(DrawChange, MirrorsGreyImagesOnlyWhereFlipIsNamed) {
  for (const auto& [text, channels, mirrors] :
       {std::tuple("usual", 1, false), {"usual", 3, true}, {"flip", 1, true}, {"usual,flip", 1, true}}) {
    CounterRandom random(3, RandomPurpose::sample_changes, 9);
    int mirrored = 0;
    for (int i = 0; i < 100; ++i)
      mirrored += detail::draw_change(augmentation_from(text), channels, &random).mirrored ? 1 : 0;
    EXPECT_NEAR(mirrored, mirrors ? 50 : 0, mirrors ? 25 : 0) << text << ' ' << channels;
  }
}

TEST(AugmentationFrom, TakesNamesWithAndWithoutNumbers) {
  const Augmentation usual = augmentation_from("usual"),
                     all = augmentation_from("crop,rotate,shift:2,color,saturation:0"),
                     own = augmentation_from("crop:0.5,rotate:90,contrast:0.3");
  EXPECT_TRUE(usual.most_shift == 4 && usual.mirrored && !usual.grey_mirrored && usual.least_area == 0);
  EXPECT_TRUE(all.least_area == 0.08 && all.most_degrees == 15 && all.most_shift == 2 && !all.mirrored);
  EXPECT_TRUE(all.brightness == 0.2 && all.contrast == 0.2 && all.saturation == 0);
  EXPECT_TRUE(own.least_area == 0.5 && own.most_degrees == 90 && own.contrast == 0.3 && own.brightness == 0);
}

TEST(AugmentationFrom, NamesTheItemThatIsNone) {
  for (const char* const wrong :
       {"zoom", "", "flip,", "flip:2", "usual:1", "crop:0", "crop:1.1", "rotate:181", "rotate:-1",
        "shift:1.5", "color:x", "color:", "color:nan", "color:11"})
    EXPECT_THAT([&] { augmentation_from(wrong); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("is not valid")))
        << wrong;
  EXPECT_THAT([] { augmentation_from("flip,crop:2"); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("\"crop:2\""), HasSubstr("0.0001 to 1"))));
}

// Of MNIST's and CIFAR-10's kind.
Dataset made_up_dataset(std::int64_t channels) {
  Dataset dataset;
  dataset.name = "made up";
  dataset.images = Tensor(DType::u8, {6, channels, 9, 8});
  dataset.labels = Tensor::zeros(DType::u8, {6});
  for (std::int64_t i = 0; i < dataset.images.elements(); ++i)
    dataset.images.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(37 * i % 251);
  return dataset;
}

TEST(ImageSamples, AreCroppedAndChangedAlikeAfterResuming) {
  for (const std::int64_t channels : {1, 3}) {
    const Augmentation all = augmentation_from("crop:0.3,rotate,shift:1,flip,color");
    const Dataset dataset = made_up_dataset(channels);
    Batches through(dataset, {.batch_size = 2, .augmentation = all}),
        resumed(dataset, {.batch_size = 2, .augmentation = all});
    Batch expected, found;
    std::set<float> seen;
    for (int step = 0; step < 5; ++step) {
      through.next(expected);
      seen.insert(expected.samples.span<float>()[20]);
    }
    EXPECT_GT(seen.size(), 3U);
    resumed.seek({.epoch = 1, .sample = 2});
    resumed.next(found);
    const auto pixels = expected.samples.span<float>();
    EXPECT_THAT(found.samples.span<float>(), testing::ElementsAreArray(pixels));
  }
}

TEST(ImageSamples, StayAsTheyAreWhereNothingIsDrawn) {
  const Dataset dataset = made_up_dataset(3);
  Batch plain, found;
  EvaluationBatches(image_samples(dataset), {.batch_size = 6}).next(plain);
  EvaluationBatches(image_samples(dataset, augmentation_from("crop,rotate,flip,color")), {.batch_size = 6})
      .next(found);
  const auto pixels = plain.samples.span<float>();
  EXPECT_THAT(found.samples.span<float>(), testing::ElementsAreArray(pixels));
}

TEST(ImageSamples, RefuseChangesOutOfRange) {
  EXPECT_THROW(image_samples(made_up_dataset(3), {.most_degrees = 200}), InvalidArgumentError);
  EXPECT_THROW(image_samples(made_up_dataset(3), {.brightness = std::nan("")}), InvalidArgumentError);
  EXPECT_THAT([] { image_samples(made_up_dataset(2), {.least_area = 0.5}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("2 channels")));
}

}  // namespace
}  // namespace kolo::models
