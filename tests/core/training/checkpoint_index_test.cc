#include <kolo/core/training/checkpoint_files.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

CheckpointIndex small_index() {
  return {.global_step = 20,
          .file_bytes = 123,
          .header_crc32c = 0x00C0FFEE,
          .tensors = {{"w", {DType::f32, {2, 3}, 0xE3069283}}},
          .random_positions = {{"dropout", UINT64_MAX}},
          .state = {{"samples", R"({"batch":17,"epoch":3})"}}};
}

TEST(CheckpointIndex, ReadsBackWhatItWrote) {
  const CheckpointIndex index = parse_checkpoint_index(checkpoint_index_text(small_index()));
  EXPECT_EQ(index.global_step, 20);
  EXPECT_EQ(index.file_bytes, 123u);
  EXPECT_EQ(index.header_crc32c, 0x00C0FFEEu);
  EXPECT_EQ(index.tensors.at("w").dtype, DType::f32);
  EXPECT_EQ(index.tensors.at("w").shape, Shape({2, 3}));
  EXPECT_EQ(index.tensors.at("w").crc32c, 0xE3069283u);
  EXPECT_EQ(index.random_positions.at("dropout"), UINT64_MAX);
  EXPECT_EQ(index.state.at("samples"), R"({"batch":17,"epoch":3})");
}

TEST(CheckpointIndex, HoldsTheAbsenceOfAGlobalStep) {
  CheckpointIndex index = small_index();
  index.global_step.reset();
  EXPECT_FALSE(parse_checkpoint_index(checkpoint_index_text(index)).global_step);
}

TEST(CheckpointIndex, IsTheSameTextForEqualStateHoweverItWasSpelt) {
  CheckpointIndex respelt = small_index();
  respelt.state["samples"] = "{ \"epoch\": 3,\n \"batch\": 17 }";
  EXPECT_EQ(checkpoint_index_text(respelt), checkpoint_index_text(small_index()));
}

TEST(CheckpointIndex, RefusesStateThatIsNoJson) {
  CheckpointIndex index = small_index();
  index.state["samples"] = "epoch 3";
  EXPECT_THAT([&] { checkpoint_index_text(index); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("\"samples\" is no JSON value: epoch 3")));
}

TEST(CheckpointIndex, FindsEveryCut) {
  const std::string text = checkpoint_index_text(small_index());
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes)
    EXPECT_THROW(parse_checkpoint_index(text.substr(0, bytes)), DataLossError) << bytes;
  EXPECT_THROW(parse_checkpoint_index(text + "\n"), DataLossError);
}

TEST(CheckpointIndex, FindsEveryFlippedBit) {
  std::string text = checkpoint_index_text(small_index());
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
    EXPECT_THROW(parse_checkpoint_index(text), DataLossError) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
  }
  EXPECT_NO_THROW(parse_checkpoint_index(text));
}

TEST(CheckpointIndex, SummaryIsOneLineOfJson) {
  EXPECT_EQ(
      checkpoint_summary_json(small_index()),
      R"({"file_bytes":123,"global_step":20,"header_crc32c":"00c0ffee","random_positions":{"dropout":18446744073709551615},)"
      R"("state":{"samples":{"batch":17,"epoch":3}},"tensors":{"w":{"crc32c":"e3069283","dtype":"f32","shape":[2,3]}}})");
}

}  // namespace
}  // namespace kolo
