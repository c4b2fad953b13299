#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/tensor/dtype.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr DType kAll[] = {DType::f32, DType::f64, DType::i32, DType::i64,  DType::boolean,
                          DType::u8,  DType::i8,  DType::f16, DType::bf16, DType::string};

template <typename Float>
constexpr int kMantissaBits = 0;
template <>
constexpr int kMantissaBits<Half> = 10;
template <>
constexpr int kMantissaBits<BFloat16> = 7;

template <typename Float>
class SixteenBits : public ::testing::Test {
 public:
  static constexpr int kMantissa = kMantissaBits<Float>;
  static constexpr int kExponentMask = (1 << (15 - kMantissa)) - 1;
  static constexpr int kInfinity = kExponentMask << kMantissa;

  static Float from_bits(int bits) {
    Float value;
    value.bits = static_cast<std::uint16_t>(bits);
    return value;
  }
  // By IEEE 754's definition; what would be infinity is the power of two after the largest number, as
  // rounding sees it.
  static double magnitude(int bits) {
    const int bias = kExponentMask / 2, exponent = bits >> kMantissa,
              mantissa = bits & ((1 << kMantissa) - 1);
    if (exponent == 0) return std::ldexp(mantissa, 1 - bias - kMantissa);
    return std::ldexp(mantissa + (1 << kMantissa), exponent - bias - kMantissa);
  }
  static int rounded(double value) { return Float(static_cast<float>(value)).bits; }
};

using Formats = ::testing::Types<Half, BFloat16>;
class FormatNames {
 public:
  template <typename Float>
  static std::string GetName(int) {
    return name(dtype_of<Float>());
  }
};
TYPED_TEST_SUITE(SixteenBits, Formats, FormatNames);

TYPED_TEST(SixteenBits, EveryFinitePatternMeansWhatTheStandardSays) {
  for (int bits = 0; bits < TestFixture::kInfinity; ++bits) {
    const double expected = TestFixture::magnitude(bits);
    ASSERT_EQ(static_cast<float>(TestFixture::from_bits(bits)), expected) << bits;
    const auto negative = static_cast<float>(TestFixture::from_bits(bits | 0x8000));
    ASSERT_EQ(negative, -expected) << bits;
    ASSERT_TRUE(std::signbit(negative)) << bits;
  }
}

TYPED_TEST(SixteenBits, EveryPatternButNanSurvivesTheWayThroughFloat) {
  for (int sign : {0, 0x8000})
    for (int bits = 0; bits <= TestFixture::kInfinity; ++bits)
      ASSERT_EQ(TypeParam(static_cast<float>(TestFixture::from_bits(sign | bits))).bits, sign | bits);
}

TYPED_TEST(SixteenBits, EveryMidpointRoundsToEvenAndItsNeighboursToTheNearer) {
  for (int bits = 0; bits < TestFixture::kInfinity; ++bits) {
    // Exact as a float: it needs one bit of mantissa more than the format.
    const auto midpoint =
        static_cast<float>((TestFixture::magnitude(bits) + TestFixture::magnitude(bits + 1)) / 2);
    const int even = bits + bits % 2;
    ASSERT_EQ(TestFixture::rounded(midpoint), even) << bits;
    ASSERT_EQ(TestFixture::rounded(-midpoint), even | 0x8000) << bits;
    ASSERT_EQ(TestFixture::rounded(std::nextafter(midpoint, 0.0f)), bits) << bits;
    ASSERT_EQ(TestFixture::rounded(std::nextafter(midpoint, HUGE_VALF)), bits + 1) << bits;
  }
}

TYPED_TEST(SixteenBits, EveryNanStaysANanWithItsSign) {
  for (int sign : {0, 0x8000})
    for (int bits = TestFixture::kInfinity + 1; bits < 0x8000; ++bits) {
      const auto nan = static_cast<float>(TestFixture::from_bits(sign | bits));
      ASSERT_TRUE(std::isnan(nan)) << bits;
      const int back = TypeParam(nan).bits;
      ASSERT_GT(back & 0x7fff, TestFixture::kInfinity) << bits;
      ASSERT_EQ(back & 0x8000, sign) << bits;
    }
}

TYPED_TEST(SixteenBits, TheLargestFloatIsInfiniteAndTheSmallestZero) {
  EXPECT_EQ(TestFixture::rounded(std::numeric_limits<float>::max()), TestFixture::kInfinity);
  EXPECT_EQ(TestFixture::rounded(-HUGE_VALF), TestFixture::kInfinity | 0x8000);
  EXPECT_EQ(TestFixture::rounded(-std::numeric_limits<float>::denorm_min()), 0x8000);
}

TEST(BFloat16, DoesNotMistakeANanOfLowBitsForInfinity) {
  // Its payload lies in the half of the float that is cut off.
  float nan;
  const std::uint32_t bits = 0x7f800001;
  static_assert(sizeof nan == sizeof bits);
  std::memcpy(&nan, &bits, sizeof nan);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(nan))));
  EXPECT_TRUE(std::isnan(static_cast<float>(Half(nan))));
}

TEST(DType, OfEachElementTypeHasItsSize) {
  EXPECT_EQ(size_of(dtype_of<float>()), sizeof(float));
  EXPECT_EQ(size_of(dtype_of<double>()), sizeof(double));
  EXPECT_EQ(size_of(dtype_of<std::int32_t>()), 4u);
  EXPECT_EQ(size_of(dtype_of<std::int64_t>()), 8u);
  EXPECT_EQ(size_of(dtype_of<bool>()), 1u);
  EXPECT_EQ(size_of(dtype_of<std::uint8_t>()), 1u);
  EXPECT_EQ(size_of(dtype_of<std::int8_t>()), 1u);
  EXPECT_EQ(size_of(dtype_of<Half>()), sizeof(Half));
  EXPECT_EQ(size_of(dtype_of<BFloat16>()), sizeof(BFloat16));
  EXPECT_EQ(size_of(dtype_of<std::string>()), sizeof(std::string));
}

TEST(DType, IsFloatingOrWholeOrNeither) {
  std::string floating, whole;
  for (const DType dtype : kAll) {
    if (is_floating(dtype)) floating += name(dtype) + std::string(" ");
    if (is_integer(dtype)) whole += name(dtype) + std::string(" ");
  }
  EXPECT_EQ(floating, "f32 f64 f16 bf16 ");
  EXPECT_EQ(whole, "i32 i64 u8 i8 ");
}

TEST(DType, HasKolosTensorFlowsAndNumpysSpellings) {
  std::string spellings;
  for (const DType dtype : kAll)
    spellings += fmt::format("{} {} {} {}\n", dtype, tf_name(dtype), tf_enum_name(dtype), numpy_name(dtype));
  EXPECT_EQ(spellings,
            "f32 float DT_FLOAT float32\n"
            "f64 double DT_DOUBLE float64\n"
            "i32 int32 DT_INT32 int32\n"
            "i64 int64 DT_INT64 int64\n"
            "bool bool DT_BOOL bool\n"
            "u8 uint8 DT_UINT8 uint8\n"
            "i8 int8 DT_INT8 int8\n"
            "f16 half DT_HALF float16\n"
            "bf16 bfloat16 DT_BFLOAT16 bfloat16\n"
            "string string DT_STRING string\n");
}

TEST(DType, IsFoundByKolosSpellingAlone) {
  for (const DType dtype : kAll) EXPECT_EQ(dtype_from_name(name(dtype)), dtype);
  EXPECT_THAT([] { dtype_from_name("float32"); }, ThrowsMessage<InvalidArgumentError>(AllOf(
                                                      HasSubstr("\"float32\""), HasSubstr("f32, f64, i32"))));
}

}  // namespace
}  // namespace kolo
