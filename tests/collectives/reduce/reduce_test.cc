#include <kolo/collectives/reduce/reduce.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename T>
std::vector<T> reduced(ReduceOp op, std::vector<T> dst, const std::vector<T>& src) {
  reduce(op, dtype_of<T>(), dst.data(), src.data(), static_cast<std::int64_t>(dst.size()));
  return dst;
}

// Longer than one vector of any instruction set, and with a rest.
TEST(Reduce, CoversFullVectorsAndTheRest) {
  for (const int elements : {0, 1, 7, 16, 33, 130}) {
    std::vector<float> a(elements), b(elements), sum(elements), product(elements);
    for (int i = 0; i < elements; ++i) {
      a[i] = static_cast<float>(i);
      b[i] = 0.5f;
      sum[i] = a[i] + 0.5f;
      product[i] = a[i] * 0.5f;
    }
    EXPECT_EQ(reduced(ReduceOp::sum, a, b), sum);
    EXPECT_EQ(reduced(ReduceOp::product, a, b), product);
  }
}

TEST(Reduce, MinimumAndMaximumKeepNanFromEitherSide) {
  const std::vector<float> a = {1, kNan, 1, kNan}, b = {2, 2, kNan, kNan};
  EXPECT_THAT(reduced(ReduceOp::min, a, b),
              ElementsAre(1, testing::IsNan(), testing::IsNan(), testing::IsNan()));
  EXPECT_THAT(reduced(ReduceOp::max, a, b),
              ElementsAre(2, testing::IsNan(), testing::IsNan(), testing::IsNan()));
}

TEST(Reduce, IntegersWrap) {
  EXPECT_THAT(reduced<std::int8_t>(ReduceOp::sum, {127, -128}, {1, -1}), ElementsAre(-128, 127));
  EXPECT_THAT(reduced<std::uint8_t>(ReduceOp::product, {200, 3}, {2, 5}), ElementsAre(144, 15));
  EXPECT_THAT(reduced<std::int64_t>(ReduceOp::sum, {INT64_MAX}, {1}), ElementsAre(INT64_MIN));
  EXPECT_THAT(reduced<std::int32_t>(ReduceOp::product, {65536, -3}, {65536, 5}), ElementsAre(0, -15));
}

TEST(Reduce, IntegersCompareSigned) {
  EXPECT_THAT(reduced<std::int8_t>(ReduceOp::min, {-1, 3}, {1, 2}), ElementsAre(-1, 2));
  EXPECT_THAT(reduced<std::uint8_t>(ReduceOp::max, {255, 3}, {1, 2}), ElementsAre(255, 3));
}

TEST(Reduce, BooleansAreOrForSumAndAndForProduct) {
  const bool a[] = {true, false, true, false}, b[] = {true, true, false, false};
  bool either[4], both[4];
  std::copy(a, a + 4, either);
  std::copy(a, a + 4, both);
  reduce(ReduceOp::sum, DType::boolean, either, b, 4);
  reduce(ReduceOp::product, DType::boolean, both, b, 4);
  EXPECT_THAT(either, ElementsAre(true, true, true, false));
  EXPECT_THAT(both, ElementsAre(true, false, false, false));
}

// 1 + 2^-8 lies half-way between two bf16 and goes to the even one, 1; 1 + 3·2^-8 goes up to 1 + 2^-6.
TEST(Reduce, SumsOfBfloat16RoundToNearestEven) {
  const std::vector<BFloat16> a = {BFloat16(1.0f), BFloat16(1.0f + 1.0f / 128)};
  const std::vector<BFloat16> b = {BFloat16(1.0f / 256), BFloat16(1.0f / 256)};
  EXPECT_THAT(reduced(ReduceOp::sum, a, b), ElementsAre(BFloat16(1.0f), BFloat16(1.0f + 1.0f / 64)));
}

TEST(Reduce, SixteenBitFloatsKeepInfinityAndNan) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto sums =
      reduced<BFloat16>(ReduceOp::sum, {BFloat16(inf), BFloat16(kNan)}, {BFloat16(1), BFloat16(1)});
  EXPECT_EQ(static_cast<float>(sums[0]), inf);
  EXPECT_TRUE(std::isnan(static_cast<float>(sums[1])));
  const auto halves =
      reduced<Half>(ReduceOp::sum, {Half(65504.0f), Half(1.5f)}, {Half(65504.0f), Half(0.25f)});
  EXPECT_EQ(static_cast<float>(halves[0]), inf);
  EXPECT_EQ(static_cast<float>(halves[1]), 1.75f);
}

TEST(ReduceAndDivide, RoundsHalvesOnce) {
  std::vector<Half> a(5, Half(2048.0f));
  const std::vector<Half> b(5, Half(1.0f));
  reduce_and_divide(DType::f16, a.data(), b.data(), 5, 3);
  EXPECT_THAT(a, testing::Each(Half(683.0f)));  // 2049 / 3; 2048 + 1 alone would round to 2048
}

// 50000 is beyond what two of them may add up to in f16; 21 elements fill no number of vectors.
TEST(ReduceScaled, KeepsASumWithinTheRangeOfHalves) {
  std::vector<Half> a(21, Half(50016.0f));
  const std::vector<Half> b(21, Half(29984.0f));
  reduce_scaled(DType::f16, a.data(), 0.5f, b.data(), 0.5f, 21, 1);
  EXPECT_THAT(a, testing::Each(Half(40000.0f)));
  reduce_scaled(DType::f16, a.data(), 2, b.data(), 1, 21, 3);
  EXPECT_THAT(a, testing::Each(Half(109984.0f / 3)));
}

TEST(Divide, IsExactWhereTheReciprocalIsNot) {
  for (const int divisor : {41, 47, 55}) {
    std::vector<float> values(17, static_cast<float>(divisor));
    divide(DType::f32, values.data(), 17, divisor);
    EXPECT_THAT(values, testing::Each(1.0f));
  }
}

TEST(ReduceOp, IsRefusedForAverageOfIntegersAndForStrings) {
  EXPECT_THROW(check_reducible(ReduceOp::average, DType::i32), InvalidArgumentError);
  EXPECT_THROW(check_reducible(ReduceOp::sum, DType::string), InvalidArgumentError);
  EXPECT_NO_THROW(check_reducible(ReduceOp::average, DType::bf16));
}

TEST(Reduction, IsRefusedWithAScaleThatIsNoNumber) {
  EXPECT_THAT(
      [] {
        check_reducible({ReduceOp::sum, kNan}, DType::f32);
      },
      testing::ThrowsMessage<InvalidArgumentError>(testing::HasSubstr("must be numbers")));
  EXPECT_THROW(check_scales({ReduceOp::average, 1, kNan}), InvalidArgumentError);
  EXPECT_NO_THROW(check_scales({ReduceOp::sum, 0, std::numeric_limits<double>::infinity()}));
}

TEST(ReduceOp, IsFoundByNameAndNamesTheNearest) {
  EXPECT_EQ(reduce_op_from_name("average"), ReduceOp::average);
  EXPECT_THAT([] { reduce_op_from_name("averge"); },
              testing::ThrowsMessage<InvalidArgumentError>(testing::HasSubstr("did you mean \"average\"")));
}

// `outs` copies of the result.
template <typename T>
std::vector<std::vector<T>> reduced(ReduceOp op, const std::vector<std::vector<T>>& arrays, int outs = 1,
                                    int divisor = 1) {
  std::vector<std::vector<T>> results(outs, std::vector<T>(arrays[0].size()));
  std::vector<std::byte*> to;
  std::vector<const std::byte*> from;
  for (auto& result : results) to.push_back(reinterpret_cast<std::byte*>(result.data()));
  for (const auto& array : arrays) from.push_back(reinterpret_cast<const std::byte*>(array.data()));
  reduce_many(op, dtype_of<T>(), to, from, static_cast<std::int64_t>(arrays[0].size()), divisor);
  return results;
}

TEST(ReduceMany, SumsInOrderForAnyLengthAndNumberOfArrays) {
  std::mt19937 random(1);
  for (const int elements : {0, 1, 7, 16, 33, 64, 130, 1001})
    for (const int count : {1, 2, 3, 5})
      for (const int outs : {1, 2, 3}) {
        std::vector<std::vector<float>> arrays(count, std::vector<float>(elements));
        std::vector<float> expected(elements);
        for (auto& array : arrays)
          for (auto& x : array) x = std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 40));
        for (int i = 0; i < elements; ++i) {
          expected[i] = arrays[0][i];
          for (int k = 1; k < count; ++k) expected[i] += arrays[k][i];
        }
        for (const auto& result : reduced(ReduceOp::sum, arrays, outs)) EXPECT_EQ(result, expected);
      }
}

TEST(ReduceMany, MayWriteOverWhatItReads) {
  std::vector<float> a(1000, 1), b(1000, 2);
  auto* const pa = reinterpret_cast<std::byte*>(a.data());
  auto* const pb = reinterpret_cast<std::byte*>(b.data());
  const std::byte* const from[] = {pa, pb};
  std::byte* const to[] = {pa, pb};
  reduce_many(ReduceOp::sum, DType::f32, to, from, 1000, 1);
  EXPECT_THAT(a, testing::Each(3.0f));
  EXPECT_THAT(b, testing::Each(3.0f));
}

TEST(ReduceMany, AverageIsADivision) {
  // 41 × (1/41) is not 1 in f32; 41 / 41 is.
  EXPECT_THAT(reduced<float>(ReduceOp::average, std::vector<std::vector<float>>(41, {1.0f, 3.0f}), 1, 41)[0],
              ElementsAre(1.0f, 3.0f));
  EXPECT_THAT(reduced<double>(ReduceOp::average, {{1, 2}, {2, 4}, {3, 9}}, 1, 3)[0], ElementsAre(2.0, 5.0));
}

// Row 7 of the worked examples: one by one the sums would be 2048, 2048.
TEST(ReduceMany, HalvesAreRoundedOnce) {
  EXPECT_THAT(reduced<Half>(ReduceOp::sum, {{Half(2048.0f)}, {Half(1.0f)}, {Half(1.0f)}})[0],
              ElementsAre(Half(2050.0f)));
}

TEST(ReduceMany, Bfloat16IsRoundedOnce) {
  // 256 + 1 is a tie that goes back to 256; 256 + 1 + 1 = 258 is a bf16.
  EXPECT_THAT(reduced<BFloat16>(ReduceOp::sum, {{BFloat16(256.0f)}, {BFloat16(1.0f)}, {BFloat16(1.0f)}})[0],
              ElementsAre(BFloat16(258.0f)));
}

TEST(ReduceMany, MinimumAndMaximumKeepNanOfAnyArray) {
  const std::vector<std::vector<float>> arrays = {{-1, kNan, 3}, {0, 1, kNan}, {5, 1, 1}};
  EXPECT_THAT(reduced(ReduceOp::max, arrays)[0], ElementsAre(5, testing::IsNan(), testing::IsNan()));
  EXPECT_THAT(reduced(ReduceOp::min, arrays)[0], ElementsAre(-1, testing::IsNan(), testing::IsNan()));
}

TEST(ReduceMany, IntegersWrapAndCompare) {
  EXPECT_THAT(reduced<std::int8_t>(ReduceOp::sum, {{127}, {1}, {1}})[0], ElementsAre(-127));
  EXPECT_THAT(reduced<std::uint8_t>(ReduceOp::product, {{200}, {2}, {3}})[0], ElementsAre(176));
  EXPECT_THAT(reduced<std::int32_t>(ReduceOp::min, {{3}, {-5}, {4}}, 2)[1], ElementsAre(-5));
  EXPECT_THAT(reduced<std::int64_t>(ReduceOp::sum, {{INT64_MAX}, {1}})[0], ElementsAre(INT64_MIN));
}

TEST(ReduceMany, BooleansAreOrForSumAndAndForProduct) {
  const bool a[] = {true, true, false}, b[] = {true, false, false}, c[] = {true, true, false};
  const std::byte* const from[] = {reinterpret_cast<const std::byte*>(a),
                                   reinterpret_cast<const std::byte*>(b),
                                   reinterpret_cast<const std::byte*>(c)};
  bool either[3], both[3];
  std::byte* const sum[] = {reinterpret_cast<std::byte*>(either)};
  std::byte* const product[] = {reinterpret_cast<std::byte*>(both)};
  reduce_many(ReduceOp::sum, DType::boolean, sum, from, 3, 1);
  reduce_many(ReduceOp::product, DType::boolean, product, from, 3, 1);
  EXPECT_THAT(either, ElementsAre(true, true, false));
  EXPECT_THAT(both, ElementsAre(true, false, false));
}

}  // namespace
}  // namespace kolo
