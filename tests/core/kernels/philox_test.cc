#include <kolo/core/kernels/elements/philox.h>

#include <gmock/gmock.h>

#include <cmath>

#include <kolo/core/kernels/elements/normal_quantile.h>

namespace kolo::detail {
namespace {

using testing::ElementsAre;

// Known answers of the authors' library, Random123, file kat_vectors, "philox4x32 10".
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_THAT(philox_4x32_10({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_THAT(philox_4x32_10({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox_4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Philox, BlocksOfTwoSeedsAndPositionsDiffer) {
  const PhiloxBlocks blocks(1, 2);
  EXPECT_EQ(blocks.block(5), PhiloxBlocks(1, 2).block(5));
  EXPECT_NE(blocks.block(5), blocks.block(6));
  EXPECT_NE(blocks.block(5), PhiloxBlocks(1, 3).block(5));
  EXPECT_NE(blocks.block(5), PhiloxBlocks(2, 2).block(5));
  EXPECT_NE(blocks.block(0), blocks.block(std::uint64_t{1} << 32));
}

// Φ(x) = erfc(−x / √2) / 2.
TEST(NormalQuantile, UndoesTheDistribution) {
  for (int i = -200; i <= 200; ++i) {
    const double x = i / 100.0, p = std::erfc(-x / std::sqrt(2.0)) / 2;
    EXPECT_NEAR(normal_quantile_within_two(p), x, 1e-14) << "at " << p;
  }
}

}  // namespace
}  // namespace kolo::detail
