#include <algorithm>
#include <array>
#include <climits>
#include <cstring>

#include <gmock/gmock.h>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/base/error.h>
#include <kolo/models/data.h>

namespace kolo::models {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::ThrowsMessage;

const std::uint8_t* picture(const Dataset& dataset, std::int64_t index) {
  return dataset.images.data<std::uint8_t>() + index * 784;
}

// Label of the training picture with the smallest squared distance.
int nearest_label(const Dataset& train, const std::uint8_t* asked) {
  int best = INT_MAX, label = -1;
  for (std::int64_t i = 0; i < train.size(); ++i) {
    const std::uint8_t* const known = picture(train, i);
    int sum = 0;
    for (int k = 0; k < 784; ++k) sum += (known[k] - asked[k]) * (known[k] - asked[k]);
    if (sum < best) {
      best = sum;
      label = train.labels.data<std::uint8_t>()[i];
    }
  }
  return label;
}

TEST(GeneratedDigits, HaveTheDefaultSizes) {
  EXPECT_EQ(generated_digits(Split::train).images.shape(), (Shape{7000, 28, 28}));
  EXPECT_EQ(generated_digits(Split::test).images.shape(), (Shape{1500, 28, 28}));
  EXPECT_EQ(generated_digits(Split::test).name, "generated digits");
}

TEST(GeneratedDigits, AreTheSameBytesOnEveryMachine) {
  const Dataset digits = generated_digits(1, 0, 500);
  // g++ 12 and clang 14 agree on these sums, optimised for AVX-512 with FMA or not at all.
  EXPECT_EQ(crc32c(digits.images.raw(), digits.images.bytes()), 0x2f38fb40u);
  EXPECT_EQ(crc32c(digits.labels.raw(), digits.labels.bytes()), 0x0368e033u);
}

TEST(GeneratedDigits, DependOnSeedAndIndexAlone) {
  const Dataset run = generated_digits(7, 0, 40), part = generated_digits(7, 30, 10);
  EXPECT_EQ(std::memcmp(picture(run, 30), picture(part, 0), 10 * 784), 0);
  EXPECT_EQ(std::memcmp(run.labels.raw() + 30, part.labels.raw(), 10), 0);
  EXPECT_NE(std::memcmp(picture(run, 0), picture(generated_digits(8, 0, 40), 0), 40 * 784), 0);
}

TEST(GeneratedDigits, HoldEachDigitEquallyOftenInRandomOrder) {
  const Dataset digits = generated_digits(3, 0, 1000);
  std::array<int, 10> counts{};
  int in_turn = 0;
  const auto labels = digits.labels.span<std::uint8_t>();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    ++counts.at(labels[i]);
    in_turn += labels[i] == i % 10 ? 1 : 0;
  }
  EXPECT_THAT(counts, Each(100));
  EXPECT_LT(in_turn, 200);  // 100 are expected by chance, with a standard deviation of about 10
}

TEST(GeneratedDigits, NeverShowTheSamePictureTwice) {
  const Dataset digits = generated_digits(1, 0, 300);
  for (std::int64_t a = 0; a < digits.size(); ++a) {
    for (std::int64_t b = 0; b < a; ++b)
      ASSERT_NE(std::memcmp(picture(digits, a), picture(digits, b), 784), 0);
  }
}

TEST(GeneratedDigits, LeaveInkInEveryPictureAndPaperAtItsCorners) {
  const Dataset digits = generated_digits(2, 0, 500);
  for (std::int64_t i = 0; i < digits.size(); ++i) {
    const std::uint8_t* const pixels = picture(digits, i);
    EXPECT_GT(std::count_if(pixels, pixels + 784, [](int pixel) { return pixel > 96; }), 12)
        << "picture " << i;
    EXPECT_LT(std::max({pixels[0], pixels[27], pixels[27 * 28], pixels[783]}), 96) << "picture " << i;
  }
}

// The nearest of 7,000 neighbours tells 95 % of MNIST's digits; the drawn ones shall be neither noise nor
// stamps.
TEST(GeneratedDigits, CanBeLearntButAreNotTrivial) {
  const Dataset train = generated_digits(1, 0, 2000), test = generated_digits(1, 1'000'000, 300);
  int right = 0;
  for (std::int64_t i = 0; i < test.size(); ++i)
    right += nearest_label(train, picture(test, i)) == test.labels.data<std::uint8_t>()[i] ? 1 : 0;
  EXPECT_GT(right, 255);
  EXPECT_LT(right, 297);
}

TEST(GeneratedDigits, RefuseEmptySet) {
  EXPECT_THAT([] { generated_digits(1, 0, 0); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("0 generated digits")));
}

}  // namespace
}  // namespace kolo::models
