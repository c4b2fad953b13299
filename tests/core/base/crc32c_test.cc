#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

#include <kolo/core/base/crc32c.h>

namespace kolo {
namespace {

std::uint32_t sum_of(const std::vector<std::uint8_t>& bytes) { return crc32c(bytes.data(), bytes.size()); }

// The next five: RFC 3720, appendix B.4.
TEST(Crc32c, OfThirtyTwoZerosIsTheRfcs) { EXPECT_EQ(sum_of(std::vector<std::uint8_t>(32, 0)), 0x8A9136AAu); }

TEST(Crc32c, OfThirtyTwoOnesIsTheRfcs) {
  EXPECT_EQ(sum_of(std::vector<std::uint8_t>(32, 0xFF)), 0x62A8AB43u);
}

TEST(Crc32c, OfRisingBytesIsTheRfcs) {
  std::vector<std::uint8_t> bytes(32);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  EXPECT_EQ(sum_of(bytes), 0x46DD794Eu);
}

TEST(Crc32c, OfFallingBytesIsTheRfcs) {
  std::vector<std::uint8_t> bytes(32);
  std::iota(bytes.rbegin(), bytes.rend(), std::uint8_t{0});
  EXPECT_EQ(sum_of(bytes), 0x113FDB5Cu);
}

TEST(Crc32c, OfAnIscsiReadCommandIsTheRfcs) {
  const std::vector<std::uint8_t> command = {0x01, 0xC0, 0, 0, 0, 0, 0,    0, 0,    0, 0, 0,    0, 0, 0, 0,
                                             0x14, 0,    0, 0, 0, 0, 0x04, 0, 0,    0, 0, 0x14, 0, 0, 0, 0x18,
                                             0x28, 0,    0, 0, 0, 0, 0,    0, 0x02, 0, 0, 0,    0, 0, 0, 0};
  EXPECT_EQ(sum_of(command), 0xD9963A56u);
}

TEST(Crc32c, OfTheNineDigitsIsTheHeadersCheckValue) { EXPECT_EQ(crc32c("123456789", 9), 0xE3069283u); }

TEST(Crc32c, OfNothingIsZero) { EXPECT_EQ(crc32c(nullptr, 0), 0u); }

TEST(Crc32c, OfPiecesIsThatOfTheWholeWhereverItIsCut) {
  constexpr std::string_view text = "123456789";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Crc32c sum;
    sum.add(text.data(), cut);
    sum.add(text.data() + cut, text.size() - cut);
    EXPECT_EQ(sum.value(), 0xE3069283u) << "cut after " << cut;
  }
}

}  // namespace
}  // namespace kolo
