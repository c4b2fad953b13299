// Samples of other data from which a training has learnt are counted, and by some of them where there are
// very many.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include <kolo/models/learnt_samples.h>

namespace kolo::models::detail {
namespace {

// Samples from this number on.
SampleContents samples(std::int64_t first, std::int64_t count) {
  return {.count = count, .digest = [first](std::int64_t place) {
            return static_cast<std::uint64_t>(first + place) * 0x9e3779b97f4a7c15 + 1;
          }};
}

// Pictures whose lengths are all different, or all one.
SampleContents pictures(std::int64_t first, std::int64_t count, bool are_alike, std::int64_t& opened) {
  SampleContents contents = samples(first, count);
  contents.bytes = [first, are_alike](std::int64_t place) -> std::uint64_t {
    return are_alike ? 100 : static_cast<std::uint64_t>(1000 + first + place);
  };
  contents.part = [first, &opened](std::int64_t place) {
    ++opened;
    return static_cast<std::uint64_t>(first + place);
  };
  return contents;
}

TEST(LearntSamples, AreCountedWithoutThoseThatWereDrawn) {
  const std::vector<std::int64_t> drawn = {0, 1, 2, 3, 4};
  const LearntSamples learnt = learnt_samples(drawn, samples(0, 100));
  EXPECT_EQ(learnt.marks.size(), 95U);
  EXPECT_EQ(learnt_among(learnt, samples(0, 100)).samples, 95);
  EXPECT_FALSE(learnt_among(learnt, samples(0, 100)).is_estimate);
  EXPECT_EQ(learnt_among(learnt, samples(97, 1000)).samples, 3);
  EXPECT_EQ(learnt_among(learnt, samples(98, 1000)).samples, 0) << "too few";
  EXPECT_EQ(learnt_among(learnt, samples(98, 2)).samples, 2) << "all there are";
  EXPECT_EQ(learnt_among(learnt, samples(100, 1000)).samples, 0);
  EXPECT_EQ(learnt_among(learnt, samples(0, 0)).samples, 0);
  EXPECT_EQ(learnt_among(LearntSamples(), samples(0, 10)).samples, 0);
}

TEST(LearntSamples, OfSeveralTrainingsAreJoined) {
  const auto first = std::make_shared<const LearntSamples>(learnt_samples({}, samples(0, 100))),
             second = std::make_shared<const LearntSamples>(learnt_samples({}, samples(50, 100)));
  EXPECT_EQ(joined(first, nullptr), first);
  EXPECT_EQ(joined(nullptr, second), second);
  EXPECT_EQ(learnt_among(*joined(first, second), samples(0, 1000)).samples, 150);
  EXPECT_EQ(*joined(first, first), *first) << "the same data again, and the same chance";
}

TEST(LearntSamples, OfVeryManySomeAreKept) {
  constexpr std::int64_t kMany = std::int64_t{5} << 20;
  const auto learnt = std::make_shared<const LearntSamples>(learnt_samples({}, samples(0, kMany)));
  EXPECT_EQ(learnt->one_of, 2U);
  EXPECT_NEAR(static_cast<double>(learnt->marks.size()), kMany / 2.0, kMany / 100.0);
  const LearntCount some = learnt_among(*learnt, samples(kMany - 10000, 20000));
  EXPECT_TRUE(some.is_estimate);
  EXPECT_NEAR(static_cast<double>(some.samples), 10000, 1000);
  EXPECT_EQ(learnt_among(*learnt, samples(kMany, 20000)).samples, 0);
  const auto few = std::make_shared<const LearntSamples>(learnt_samples({}, samples(kMany, 20000)));
  const auto both = joined(few, learnt);
  EXPECT_EQ(both->one_of, 2U);
  EXPECT_NEAR(static_cast<double>(learnt_among(*both, samples(kMany, 20000)).samples), 20000, 2000);
}

TEST(LearntSamples, PicturesOfOtherLengthsAreNotOpened) {
  std::int64_t opened = 0;
  const LearntSamples learnt = learnt_samples({}, pictures(0, 200, false, opened));
  EXPECT_EQ(opened, 200);
  EXPECT_EQ(learnt_among(learnt, pictures(190, 5000, false, opened)).samples, 10);
  EXPECT_LT(opened, 300);
  const LearntSamples alike = learnt_samples({}, pictures(0, 200, true, opened));
  EXPECT_EQ(learnt_among(alike, pictures(190, 5000, true, opened)).samples, 10);
  const SampleContents asked = pictures(150, 60, false, opened);
  opened = 0;
  EXPECT_EQ(learnt_among(learnt_samples({}, pictures(0, 200, false, opened), &asked), asked).samples, 50);
  EXPECT_LT(opened, 150);
}

TEST(LearntSamples, OfVeryManyPicturesSomeAreOpened) {
  constexpr std::int64_t kMany = 300000;
  std::int64_t opened = 0;
  const LearntSamples learnt = learnt_samples({}, pictures(0, kMany, false, opened));
  EXPECT_EQ(learnt.one_of, 4U);
  EXPECT_LT(opened, kMany / 3);
  const LearntCount some = learnt_among(learnt, pictures(kMany - 5000, 10000, false, opened));
  EXPECT_TRUE(some.is_estimate);
  EXPECT_NEAR(static_cast<double>(some.samples), 5000, 700);
}

TEST(LearntSamples, PiecesOfATextAreFoundInRunsAlone) {
  SampleContents text = samples(0, 1), other = samples(0, 1);
  SampleContents pieces = samples(0, 100), others = samples(80, 100);
  pieces.least_run = others.least_run = 8;
  text.pieces = std::make_shared<const SampleContents>(pieces);
  other.pieces = std::make_shared<const SampleContents>(others);
  text.drawn_pieces = {90, 91, 92, 93, 94, 95, 96, 97, 98, 99};
  const LearntSamples learnt = learnt_samples({}, text);
  EXPECT_EQ(learnt.marks.size(), 90U);
  EXPECT_DOUBLE_EQ(learnt_among(learnt, other).share, 0.1);
  others = samples(83, 100);
  others.least_run = 8;
  other.pieces = std::make_shared<const SampleContents>(others);
  EXPECT_EQ(learnt_among(learnt, other).share, 0) << "seven in a row";
  others.count = 7;
  other.pieces = std::make_shared<const SampleContents>(others);
  EXPECT_FALSE(can_be_found(other));
}

}  // namespace
}  // namespace kolo::models::detail
