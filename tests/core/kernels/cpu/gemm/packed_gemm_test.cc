#include <kolo/core/kernels/cpu/gemm/packed_gemm.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "tests/core/kernels/cpu/gemm/product_check.h"

namespace kolo::detail {
namespace {

ProductCheck<PackedGemm> check_of(const PackedGemm& shape) { return {shape, false, shape.transpose_b}; }

class PackedProduct : public testing::TestWithParam<PackedGemm> {};

TEST_P(PackedProduct, IsTheSumOfProducts) {
  ASSERT_TRUE(GetParam().fits());
  check_of(GetParam()).expect_sums_of_products();
}

// Inner dimensions: one, no multiple of what a loop takes at once, several blocks, more than are packed at
// once. Columns: the fewest, several strips with a rest.
INSTANTIATE_TEST_SUITE_P(Shapes, PackedProduct,
                         testing::Values(PackedGemm{256, 1, 32, false}, PackedGemm{256, 1, 32, true},
                                         PackedGemm{257, 65, 96, false}, PackedGemm{300, 67, 96, true},
                                         PackedGemm{270, 519, 64, false}, PackedGemm{261, 519, 64, true},
                                         PackedGemm{256, 1100, 544, false},
                                         PackedGemm{256, 1100, 544, true}));

TEST(PackedGemmTest, KeepsNanAndInfinityInTheirRows) {
  const auto check = check_of({256, 40, 32, false});
  check.a_at(5, 7) = std::numeric_limits<float>::quiet_NaN();
  check.a_at(6, 7) = std::numeric_limits<float>::infinity();
  const std::vector<float> c = check.product();
  for (std::size_t i = 0; i < c.size(); ++i) {
    const std::size_t row = i / 32;
    EXPECT_EQ(std::isnan(c[i]), row == 5) << i;
    EXPECT_EQ(std::isinf(c[i]), row == 6) << i;
  }
}

TEST(PackedGemmTest, GivesTheSameBitsEachTime) {
  const auto check = check_of({256, 700, 96, true});
  EXPECT_EQ(check.product(), check.product());
}

TEST(PackedGemmTest, FitsManyRowsAndWholePanelsOfColumns) {
  EXPECT_TRUE((PackedGemm{256, 5, 32, false}.fits()));
  EXPECT_FALSE((PackedGemm{255, 5, 32, false}.fits()));
  EXPECT_FALSE((PackedGemm{256, 5, 33, false}.fits()));
  EXPECT_FALSE((PackedGemm{256, 5, 0, false}.fits()));
  EXPECT_FALSE((PackedGemm{256, 0, 32, false}.fits()));
}

}  // namespace
}  // namespace kolo::detail
