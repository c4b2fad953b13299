#include <kolo/core/kernels/cpu/gemm/streamed_gemm.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "tests/core/kernels/cpu/gemm/product_check.h"

namespace kolo::detail {
namespace {

ProductCheck<StreamedGemm> check_of(const StreamedGemm& shape) {
  return {shape, shape.transpose_a, shape.transpose_b};
}

class StreamedProduct : public testing::TestWithParam<StreamedGemm> {};

TEST_P(StreamedProduct, IsTheSumOfProducts) {
  ASSERT_TRUE(GetParam().fits());
  check_of(GetParam()).expect_sums_of_products();
}

TEST_P(StreamedProduct, KeepsNanAndInfinityInTheirRows) {
  const StreamedGemm& shape = GetParam();
  const auto check = check_of(shape);
  check.a_at(5, shape.inner - 1) = std::numeric_limits<float>::quiet_NaN();
  check.a_at(shape.rows - 1, 0) = std::numeric_limits<float>::infinity();
  const std::vector<float> c = check.product();
  for (std::size_t i = 0; i < c.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / shape.cols;
    EXPECT_EQ(std::isnan(c[i]), row == 5) << i;
    EXPECT_EQ(std::isinf(c[i]), row == shape.rows - 1) << i;
  }
}

TEST_P(StreamedProduct, GivesTheSameBitsEachTime) {
  const auto check = check_of(GetParam());
  EXPECT_EQ(check.product(), check.product());
}

// Inner dimensions: whole lines, no multiple of them, several blocks. Rows: of all heights that bands have,
// the fewest and the most.
INSTANTIATE_TEST_SUITE_P(Products, StreamedProduct,
                         testing::Values(StreamedGemm{64, 128, 32}, StreamedGemm{71, 141, 96},
                                         StreamedGemm{65, 195, 64}, StreamedGemm{85, 300, 32},
                                         StreamedGemm{255, 800, 160}));
// The result's columns need not be a multiple of anything.
INSTANTIATE_TEST_SUITE_P(OfBTransposed, StreamedProduct,
                         testing::Values(StreamedGemm{64, 128, 64, false, true},
                                         StreamedGemm{64, 205, 71, false, true},
                                         StreamedGemm{96, 300, 85, false, true},
                                         StreamedGemm{64, 801, 129, false, true}));
// With few terms, of which 2,048 columns and more are packed at a time; and with many.
INSTANTIATE_TEST_SUITE_P(OfATransposed, StreamedProduct,
                         testing::Values(StreamedGemm{64, 1, 32, true}, StreamedGemm{71, 13, 96, true},
                                         StreamedGemm{333, 64, 64, true}, StreamedGemm{65, 63, 2176, true},
                                         StreamedGemm{64, 257, 32, true}, StreamedGemm{127, 519, 96, true},
                                         StreamedGemm{256, 1100, 64, true}));
// With fewer columns than rows.
INSTANTIATE_TEST_SUITE_P(OfATransposedTurned, StreamedProduct,
                         testing::Values(StreamedGemm{288, 257, 64, true},
                                         StreamedGemm{1024, 300, 256, true}));

TEST(StreamedGemmTest, FitsWhatWasMeasuredToBeFaster) {
  EXPECT_TRUE((StreamedGemm{64, 3136, 1024}.fits()));
  EXPECT_TRUE((StreamedGemm{128, 784, 1024}.fits()));
  EXPECT_TRUE((StreamedGemm{64, 1024, 3136, false, true}.fits()));
  EXPECT_TRUE((StreamedGemm{3136, 64, 1024, true}.fits()));
  EXPECT_TRUE((StreamedGemm{256, 2048, 768, true}.fits()));
  EXPECT_FALSE((StreamedGemm{63, 3136, 1024}.fits())) << "too few rows";
  EXPECT_FALSE((StreamedGemm{256, 3136, 1024}.fits())) << "many rows";
  EXPECT_FALSE((StreamedGemm{64, 127, 1024}.fits())) << "too few terms";
  EXPECT_FALSE((StreamedGemm{64, 3136, 1000}.fits())) << "no whole panels of columns";
  EXPECT_FALSE((StreamedGemm{64, 3136, 0}.fits())) << "nothing";
  EXPECT_FALSE((StreamedGemm{128, 1024, 1024, false, true}.fits())) << "as many rows as for oneDNN";
  EXPECT_FALSE((StreamedGemm{64, 10, 1024, false, true}.fits())) << "too few terms";
  EXPECT_FALSE((StreamedGemm{65, 1024, 3136, false, true}.fits())) << "no whole panels of rows";
  EXPECT_FALSE((StreamedGemm{64, 4096, 3136, false, true}.fits())) << "a does not stay near";
  EXPECT_FALSE((StreamedGemm{64, 1024, 3136, true, true}.fits())) << "both transposed";
  EXPECT_FALSE((StreamedGemm{1024, 128, 1024, true}.fits())) << "as many terms as for oneDNN";
  EXPECT_TRUE((StreamedGemm{1024, 2048, 256, true}.fits()));
  EXPECT_FALSE((StreamedGemm{1024, 2048, 288, true}.fits())) << "neither a nor b stays near";
  EXPECT_FALSE((StreamedGemm{2048, 2048, 256, true}.fits())) << "c does not stay near";
  EXPECT_FALSE((StreamedGemm{64, 0, 32, true}.fits())) << "nothing";
}

}  // namespace
}  // namespace kolo::detail
