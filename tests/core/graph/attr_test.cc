#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/graph/attr.h>

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<AttrValue> one_of_each_kind() {
  return {true,
          7,
          0.5,
          "text",
          DType::f32,
          Shape({2, -1}),
          Tensor::scalar(1.0f),
          std::vector<std::int64_t>{1, 2},
          std::vector<std::string>{"a", "b"}};
}

TEST(AttrValue, NamesItsKind) {
  std::string kinds;
  for (const auto& value : one_of_each_kind()) kinds += value.kind() + std::string(" ");
  EXPECT_EQ(kinds, "bool int float string type shape tensor list(int) list(string) ");
}

TEST(AttrValue, EqualsItselfAndNoOtherKind) {
  const auto values = one_of_each_kind();
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = 0; j < values.size(); ++j)
      EXPECT_EQ(values[i] == values[j], i == j) << i << ' ' << j;
}

TEST(AttrValue, IsReadAsAnyNumberOfItsKind) {
  EXPECT_EQ(AttrValue(7).get<std::int32_t>(), 7);
  EXPECT_EQ(AttrValue(std::uint8_t{7}).get<std::int64_t>(), 7);
  EXPECT_EQ(AttrValue(0.5f).get<double>(), 0.5);
  EXPECT_EQ(AttrValue(0.5).get<float>(), 0.5f);
}

TEST(AttrValue, TakesALiteralAsTextNotAsBool) { EXPECT_EQ(AttrValue("same").get<std::string>(), "same"); }

TEST(AttrValue, IsNotReadAsAnotherKind) {
  EXPECT_THAT([] { AttrValue(7).get<float>(); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("kind int")));
  EXPECT_THROW(AttrValue(true).get<std::int64_t>(), InvalidArgumentError);
  EXPECT_THROW(AttrValue(1).get<bool>(), InvalidArgumentError);
  EXPECT_THROW(AttrValue("1").get<std::int64_t>(), InvalidArgumentError);
}

TEST(AttrValue, ComparesTensorsByTypeShapeAndElements) {
  const AttrValue value(Tensor::of<float>({2}, {1, 2}));
  EXPECT_EQ(value, AttrValue(Tensor::of<float>({2}, {1, 2})));
  EXPECT_FALSE(value == AttrValue(Tensor::of<float>({2}, {1, 3})));
  EXPECT_FALSE(value == AttrValue(Tensor::of<float>({1, 2}, {1, 2})));
  EXPECT_FALSE(AttrValue(Tensor::zeros(DType::f32, {1})) == AttrValue(Tensor::zeros(DType::i32, {1})));
}

TEST(AttrValue, ComparesTensorsOfTextByTheTexts) {
  const std::string text = "longer than a string holds without a block of its own";
  EXPECT_EQ(AttrValue(Tensor::scalar(text)), AttrValue(Tensor::scalar(text)));
  EXPECT_FALSE(AttrValue(Tensor::scalar(text)) == AttrValue(Tensor::scalar(text + "!")));
}

}  // namespace
}  // namespace kolo
