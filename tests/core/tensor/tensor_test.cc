#include <gmock/gmock.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

template <typename T>
std::vector<T> elements(const Tensor& tensor) {
  const auto span = tensor.span<T>();
  return {span.begin(), span.end()};
}

TEST(Tensor, DefaultConstructedHasNoBuffer) {
  const Tensor none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.elements(), 0);
  EXPECT_EQ(none.bytes(), 0u);
  EXPECT_FALSE(none.clone());
}

TEST(Tensor, OfNoElementsHasABuffer) {
  const Tensor empty(DType::f32, {0, 3});
  EXPECT_TRUE(empty);
  EXPECT_EQ(empty.elements(), 0);
}

TEST(Tensor, HoldsItsElementsRowByRow) {
  const auto tensor = Tensor::of<std::int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(tensor.dtype(), DType::i32);
  EXPECT_EQ(tensor.bytes(), 24u);
  EXPECT_THAT(elements<std::int32_t>(tensor.rows(1, 2)), ElementsAre(4, 5, 6));
}

TEST(Tensor, IsAligned) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(Tensor(DType::u8, {3}).raw()) % kAlignment, 0u);
}

TEST(Tensor, RefusesAWrongNumberOfElements) {
  EXPECT_THAT(
      [] {
        Tensor::of<float>({2, 2}, {1, 2, 3});
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("3 elements"), HasSubstr("[2,2]"))));
}

TEST(Tensor, RefusesAShapeThatIsNotKnown) {
  EXPECT_THAT([] { Tensor(DType::f32, {-1, 3}); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("[?,3]")));
  EXPECT_THROW(Tensor(DType::f32, Shape::unknown_rank()), InvalidArgumentError);
}

TEST(Tensor, RefusesAShapeWhoseBytesDoNotFitIn63Bits) {
  EXPECT_THROW(Tensor(DType::f64, {std::int64_t{1} << 31, std::int64_t{1} << 29}), InvalidArgumentError);
  EXPECT_THROW(Tensor(DType::u8, {INT64_MAX, INT64_MAX}), InvalidArgumentError);
}

TEST(Tensor, IsReadAsItsOwnTypeOnly) {
  const auto tensor = Tensor::scalar(1.5f);
  EXPECT_THAT([&] { tensor.data<double>(); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("f32"), HasSubstr("f64"))));
}

TEST(TensorValue, IsTheOnlyElementWhateverTheRank) {
  EXPECT_EQ(Tensor::scalar(1.5f).value<float>(), 1.5f);
  EXPECT_EQ(Tensor::of<bool>({1, 1}, {true}).value<bool>(), true);
}

TEST(TensorValue, IsRefusedUnlessThereIsExactlyOne) {
  EXPECT_THAT(
      [] {
        Tensor::of<float>({2}, {1, 2}).value<float>();
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[2]"), HasSubstr("not one"))));
  EXPECT_THROW(Tensor(DType::f32, {0}).value<float>(), InvalidArgumentError);
}

TEST(TensorZeros, AreZerosOfAnyType) {
  EXPECT_THAT(elements<double>(Tensor::zeros(DType::f64, {3})), Each(0.0));
  EXPECT_THAT(elements<bool>(Tensor::zeros(DType::boolean, {3})), Each(false));
  EXPECT_THAT(elements<std::string>(Tensor::zeros(DType::string, {3})), Each(std::string()));
}

TEST(TensorCopy, SharesItsElementsAndACloneDoesNot) {
  const auto original = Tensor::of<float>({2}, {1, 2});
  const Tensor copy = original, clone = original.clone();
  original.data<float>()[0] = 9;
  EXPECT_THAT(elements<float>(copy), ElementsAre(9, 2));
  EXPECT_THAT(elements<float>(clone), ElementsAre(1, 2));
}

TEST(TensorCopy, OutlivesTheOriginal) {
  auto original =
      std::make_unique<Tensor>(Tensor::of<std::string>({2}, {"a", "a text too long for the string itself"}));
  const Tensor row = original->rows(1, 2);
  original.reset();
  EXPECT_EQ(row.value<std::string>(), "a text too long for the string itself");
}

TEST(TensorView, ReshapedSharesTheElements) {
  const auto tensor = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor view = tensor.reshaped({3, 2});
  EXPECT_EQ(view.shape(), Shape({3, 2}));
  EXPECT_EQ(view.raw(), tensor.raw());
  EXPECT_THAT([&] { tensor.reshaped({4}); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[2,3]"), HasSubstr("[4]"))));
}

TEST(TensorView, ReshapedDoesNotTakeAWrappedProductForZeroElements) {
  const std::int64_t big = std::int64_t{1} << 32;
  EXPECT_THROW(Tensor(DType::f32, {0}).reshaped({big, big}), InvalidArgumentError);
}

TEST(TensorView, RowsShareTheElements) {
  const auto tensor = Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor last_two = tensor.rows(1, 3);
  EXPECT_EQ(last_two.shape(), Shape({2, 2}));
  last_two.data<float>()[0] = 9;
  EXPECT_THAT(elements<float>(tensor), ElementsAre(1, 2, 9, 4, 5, 6));
  EXPECT_THAT(elements<float>(last_two.rows(1, 2)), ElementsAre(5, 6));
}

TEST(TensorView, RowsMayBeNone) {
  EXPECT_EQ(Tensor(DType::f32, {3, 2}).rows(3, 3).shape(), Shape({0, 2}));
  EXPECT_EQ(Tensor(DType::f32, {0, 2}).rows(0, 0).elements(), 0);
}

TEST(TensorView, RowsMustBeThere) {
  const Tensor tensor(DType::f32, {3, 2});
  EXPECT_THROW(tensor.rows(-1, 1), InvalidArgumentError);
  EXPECT_THROW(tensor.rows(2, 1), InvalidArgumentError);
  EXPECT_THROW(tensor.rows(2, 4), InvalidArgumentError);
  EXPECT_THROW(Tensor::scalar(1.0f).rows(0, 1), InvalidArgumentError);
}

TEST(TensorView, OfABufferMustLieInsideIt) {
  const auto buffer = std::make_shared<Buffer>(cpu_allocator(), 16);
  EXPECT_EQ(Tensor(DType::f32, {2}, buffer, 8).raw(), buffer->data() + 8);
  EXPECT_THROW(Tensor(DType::f32, {2}, buffer, 12), InternalError);
  EXPECT_THROW(Tensor(DType::f32, {0}, buffer, 20), InternalError);
}

TEST(TensorCopyFrom, TakesTheElementsOfAnotherShape) {
  const Tensor target = Tensor::zeros(DType::f32, {2, 2});
  target.copy_from(Tensor::of<float>({4}, {1, 2, 3, 4}));
  EXPECT_THAT(elements<float>(target), ElementsAre(1, 2, 3, 4));
}

TEST(TensorCopyFrom, RefusesAnotherTypeOrNumber) {
  const Tensor target = Tensor::zeros(DType::f32, {2});
  EXPECT_THROW(target.copy_from(Tensor(DType::i32, {2})), InvalidArgumentError);
  EXPECT_THROW(target.copy_from(Tensor(DType::f32, {3})), InvalidArgumentError);
  EXPECT_THAT(elements<float>(target), Each(0.0f));
}

TEST(TensorToString, ShowsTypeShapeAndTheFirstElements) {
  EXPECT_EQ(Tensor::of<float>({3}, {1.5f, 2, 3}).to_string(2), "f32[3]: 1.5, 2, …");
  EXPECT_EQ(Tensor::of<std::int8_t>({2}, {-1, 65}).to_string(), "i8[2]: -1, 65");
  EXPECT_EQ(Tensor::scalar(BFloat16(0.5f)).to_string(), "bf16[]: 0.5");
  EXPECT_EQ(Tensor(DType::f32, {0}).to_string(), "f32[0]: ");
}

}  // namespace
}  // namespace kolo
