// 16-bit floats that are reduced in 32 bits.
// 16-bit floats that are reduced in 32 bits.

#include <kolo/collectives/algorithms/stages.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace kolo {
namespace {

using testing::ElementsAre;

// Adds to each f32 element.
class Adding final : public Collective {
 public:
  Adding(const TypedBuffer& buffer, float number) : buffer_(buffer), number_(number) {}
  void start() override {
    for (std::int64_t i = 0; i < buffer_.elements; ++i) reinterpret_cast<float*>(buffer_.bytes)[i] += number_;
  }
  Progress progress() override { return ++polls_ % 2 == 0 ? Progress::finished : Progress::none; }

 private:
  const TypedBuffer buffer_;
  const float number_;
  int polls_ = 0;
};

void run(Collective& operation) {
  operation.start();
  while (operation.progress() != Progress::finished) {
  }
}

template <typename T>
std::shared_ptr<Collective> widened_adding(std::vector<T>& values, float number) {
  return widened(TypedBuffer::of(std::span(values)), [number](const TypedBuffer& wide) {
    EXPECT_EQ(wide.dtype, DType::f32);
    return std::make_shared<Adding>(wide, number);
  });
}

// Halves from 2048 on are 2 apart, from 4096 on 4.
TEST(Widened, RoundsTheResultOnceToTheNearestEven) {
  std::vector<Half> values = {Half(2048.0f), Half(2050.0f), Half(4096.0f), Half(1.0f)};
  run(*widened_adding(values, 1));
  EXPECT_THAT(values, ElementsAre(Half(2048.0f), Half(2052.0f), Half(4096.0f), Half(2.0f)));
  run(*widened_adding(values, 3));
  EXPECT_THAT(values, ElementsAre(Half(2052.0f), Half(2056.0f), Half(4100.0f), Half(5.0f)));
}

TEST(Widened, KnowsBothTypesOfSixteenBits) {
  std::vector<BFloat16> values = {BFloat16(256.0f), BFloat16(-3.5f)};  // from 256 on they are 2 apart
  run(*widened_adding(values, 3));
  EXPECT_THAT(values, ElementsAre(BFloat16(260.0f), BFloat16(-0.5f)));
}

TEST(Widened, TakesTheBuffersElementsAnewInEachRun) {
  std::vector<Half> values = {Half(1.0f)};
  const auto operation = widened_adding(values, 1);
  run(*operation);
  values[0] = Half(10.0f);
  run(*operation);
  EXPECT_EQ(values[0], Half(11.0f));
}

TEST(WidenedWhere, LeavesAloneWhatIsNotOfSixteenBitsOrNotAskedFor) {
  std::vector<float> wide = {1};
  std::vector<Half> narrow = {Half(1.0f)};
  for (const bool of_f32 : {true, false}) {
    const TypedBuffer buffer = of_f32 ? TypedBuffer::of(std::span(wide)) : TypedBuffer::of(std::span(narrow));
    widened_where(/*f32_wire=*/of_f32, buffer, [&](const TypedBuffer& sent) {
      EXPECT_EQ(sent.bytes, buffer.bytes);
      return std::make_shared<Adding>(sent, 0.0f);
    });
  }
}

}  // namespace
}  // namespace kolo
