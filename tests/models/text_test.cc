#include <kolo/models/data.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <set>
#include <string>

#include <kolo/core/base/error.h>

namespace kolo::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Characters, AreWholeOnesEachOnce) {
  EXPECT_EQ(characters_in("b💧a\nb💧ß"), "\nabß💧");
  EXPECT_EQ(characters_in("stra\xdf"
                          "e"),
            "");  // Latin-1
  EXPECT_EQ(characters_of(*text_samples("t", std::make_shared<const Text>("abé abé"), {.length = 2})),
            " abé");
}

TEST(Characters, OfAPromptMustBeThoseOfTheText) {
  EXPECT_NO_THROW(check_prompt("ab", "abß"));
  // Each byte of it stands in one of the two others.
  EXPECT_THAT([] { check_prompt("a💤", "ab🐤💧"); }, ThrowsMessage<InvalidArgumentError>(HasSubstr(
                                                      "\"💤\" is not among the characters of the training's "
                                                      "text, which are \"ab🐤💧\"")));
  EXPECT_THAT([] { check_prompt("\xdf", "ab"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("is not UTF-8")));
  EXPECT_THAT([] { check_prompt("ß", ""); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("the training's text is not UTF-8")));
  EXPECT_NO_THROW(check_prompt("plain", ""));
}

TEST(Characters, ShowAccentsOfTheirOwnApartFromTheLetterInFront) {
  EXPECT_THAT([] { check_prompt("x", "eü\u0301‍"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("\"eü\u25cc\u0301")));
}

TEST(Text, NumbersItsBytesInOrder) {
  const Text text("banana\xff");
  EXPECT_EQ(text.alphabet(), "abn\xff");
  EXPECT_THAT(text.tokens(), ElementsAre(1, 0, 2, 0, 2, 0, 3));
  EXPECT_THAT(text.encode("nab"), ElementsAre(2, 0, 1));
  EXPECT_THAT([&] { text.encode("ac"); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("\"c\" is not among the characters of the training's text, whose 4 bytes")));
  EXPECT_THAT([&] { text.encode("a\xc3\xb6"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("\"\xc3\xb6\" is not among")));
  EXPECT_THROW(Text(""), InvalidArgumentError);
  EXPECT_THAT([] { Text::read("/nowhere"); }, ThrowsMessage<NotFoundError>(HasSubstr("/nowhere")));
}

TEST(Text, IsNoUtf16AndHasNoZeros) {
  const std::string path = testing::TempDir() + "kolo_text_zeros";
  const auto read = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return [&] { Text::read(path); };
  };
  EXPECT_THAT(read("\xff\xfe"
                   "a"),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("it is UTF-16; save the text as UTF-8")));
  EXPECT_THAT(read(std::string("PK\0\3", 4)),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("byte 2 is 0, which no text has")));
}

// Token i is i modulo 97: a piece tells where it starts.
std::string counted(int size) {
  std::string text;
  for (int i = 0; i < size; ++i) text += static_cast<char>(i % 97);
  return text;
}

std::vector<std::int32_t> starts(const TextBatch& batch) {
  std::vector<std::int32_t> found;
  const std::int64_t length = batch.tokens.shape().dim(1);
  for (std::int64_t i = 0; i < batch.tokens.shape().dim(0); ++i)
    found.push_back(batch.tokens.data<std::int32_t>()[i * length]);
  return found;
}

TEST(TextPieces, AreFollowedByTheirNextTokens) {
  const Text text(counted(1000));
  const TextBatch batch = TextPieces(text, {.batch_size = 5, .length = 20}).at(3);
  ASSERT_EQ(batch.tokens.shape(), Shape({5, 20}));
  ASSERT_EQ(batch.next.shape(), Shape({100}));
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(batch.next.data<std::int32_t>()[i], (batch.tokens.data<std::int32_t>()[i] + 1) % 97) << i;
}

TEST(TextPieces, DependOnTheStepAndThePlaceInTheGlobalBatch) {
  const Text text(counted(97 * 50));
  const TextPiecesOptions whole{.batch_size = 6, .length = 8};
  TextPiecesOptions half = whole;
  half.batch_size = 3, half.ranks = 2;
  std::vector<std::int32_t> of_two = starts(TextPieces(text, half).at(7));
  half.rank = 1;
  for (const std::int32_t start : starts(TextPieces(text, half).at(7))) of_two.push_back(start);
  EXPECT_EQ(of_two, starts(TextPieces(text, whole).at(7)));
  EXPECT_NE(of_two, starts(TextPieces(text, whole).at(8)));
}

TEST(TextPieces, StayInTheirShareAndReachAllOfIt) {
  const Text text(counted(97));
  const TextPieces last(text, {.batch_size = 50, .length = 4, .begin = 0.9, .end = 1});
  std::set<std::int32_t> seen;
  for (int step = 0; step < 10; ++step)
    for (const std::int32_t start : starts(last.at(step))) seen.insert(start);
  EXPECT_THAT(seen, ElementsAre(87, 88, 89, 90, 91, 92));  // 92 … 95, and 96 behind them
}

TEST(TextPieces, RefuseWhatCannotBe) {
  const Text text("abcdef");
  EXPECT_NO_THROW(TextPieces(text, {.length = 5}));
  EXPECT_THAT([&] { TextPieces(text, {.length = 6}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("too few for pieces of 6")));
  EXPECT_THROW(TextPieces(text, {.length = 2, .rank = 2, .ranks = 2}), InvalidArgumentError);
  EXPECT_THROW(TextPieces(text, {.length = 2, .begin = .5, .end = .5}), InvalidArgumentError);
}

std::shared_ptr<const Text> shared(const std::string& characters) {
  return std::make_shared<const Text>(characters);
}

Batch batch_of(const SampleSet& samples, std::int64_t size) {
  return {Tensor(DType::i32, {size, samples.kind().labels}),
          Tensor(DType::i32, {size * samples.kind().labels})};
}

TEST(TextSamples, StandOneBehindTheOtherAndLeaveNoTokenOut) {
  const auto samples = text_samples("counted", shared(counted(97)), {.length = 8});
  ASSERT_EQ(samples->size(), 12);  // 96 of the 97 tokens have one behind them
  EXPECT_EQ(samples->kind().classes, 97);
  const Batch batch = batch_of(*samples, 12);
  for (std::int64_t i = 0; i < 12; ++i) samples->read(i, nullptr, batch, i);
  for (std::int32_t i = 0; i < 96; ++i) {
    EXPECT_EQ(batch.samples.data<std::int32_t>()[i], i);
    EXPECT_EQ(batch.labels.data<std::int32_t>()[i], i + 1);
  }
}

TEST(TextSamples, BeginAnywhereInTrainingAndEndWithinTheirShare) {
  const auto samples =
      text_samples("counted", shared(counted(97)), {.length = 8, .begin = 0, .end = 0.25});  // 24 tokens
  ASSERT_EQ(samples->size(), 2);
  const Batch batch = batch_of(*samples, 2);
  std::set<std::int32_t> first, last;
  for (std::uint64_t epoch = 0; epoch < 200; ++epoch) {
    CounterRandom random(1, RandomPurpose::sample_changes, epoch);
    samples->read(0, &random, batch, 0);
    samples->read(1, &random, batch, 1);
    first.insert(batch.samples.data<std::int32_t>()[0]);
    last.insert(batch.samples.data<std::int32_t>()[8]);
  }
  EXPECT_THAT(first, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(last, ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));  // 15 … 22, and 23 behind them
}

TEST(TextSamples, RefuseWhatCannotBe) {
  EXPECT_EQ(text_samples("six", shared("abcdef"), {.length = 5})->size(), 1);
  EXPECT_THAT([] { text_samples("six", shared("abcdef"), {.length = 6}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr(
                  "six: 6 of the text's 6 bytes are for this part, and a sample has 6 and one behind")));
  EXPECT_THROW(text_samples("six", shared("abcdef"), {.length = 2, .begin = 1, .end = 0.5}),
               InvalidArgumentError);
}

}  // namespace
}  // namespace kolo::models
