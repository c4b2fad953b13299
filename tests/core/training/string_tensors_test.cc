// Strings in checkpoints, and on their way to other ranks.
#include <kolo/core/training/string_tensors.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/common_start.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/core/training/saver.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"
#include "tests/core/training/thread_group.h"
#include "tests/support/tensor_bytes.h"

namespace kolo {
namespace {

using namespace std::string_literals;
using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

Tensor strings(const Shape& shape, const std::vector<std::string>& elements) {
  return Tensor::of<std::string>(shape, std::span<const std::string>(elements));
}

Tensor bytes(const std::string& text) {
  const Tensor tensor(DType::u8, {static_cast<std::int64_t>(text.size())});
  std::copy_n(text.data(), text.size(), reinterpret_cast<char*>(tensor.raw()));
  return tensor;
}

// What the model holds, and what it may hold: nothing, zero bytes, more than a short string.
const std::vector<std::string> kWords = {"", "a\0b"s, std::string(70'000, 'x'), "grün"};

struct Vocabulary {
  explicit Vocabulary(const std::vector<std::string>& words = {"", "", "", ""})
      : words(s.named("words"), constant(s, strings({2, 2}, words))) {}
  Graph graph;
  Scope s{graph};
  Variable words;
};

TEST(EncodedStrings, AreLengthsThenBytes) {
  EXPECT_EQ(bytes_of(detail::encode_strings(strings({2}, {"abc", ""}))),
            "\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0abc"s);
  EXPECT_EQ(detail::encode_strings(strings({0}, {})).bytes(), 0);
}

TEST(EncodedStrings, ComeBackOrNothingChanges) {
  const Tensor two = strings({2}, {"1", "2"});
  detail::decode_strings(bytes("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0abc"s), two);
  EXPECT_THAT(two.span<std::string>(), ElementsAre("a", "bc"));
  for (const std::string& damaged : {""s, "\1\0\0\0\0\0\0\0"s, "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0ab"s,
                                     "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0abcd"s,
                                     "\1\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"
                                     "abc"s}) {
    EXPECT_THROW(detail::decode_strings(bytes(damaged), two), DataLossError);
    EXPECT_THAT(two.span<std::string>(), ElementsAre("a", "bc"));
  }
}

// Which copies them.
TEST(StringVariables, AreReadAsTheyWereBeforeALaterUpdate) {
  Vocabulary model(kWords);
  const Output before = identity(model.s, model.words.read());
  const Operation update =
      Operation(assign(model.s, model.words, constant(model.s, strings({2, 2}, {"a", "b", "c", "d"}))));
  Session session(model.graph);
  session.run(model.words.initializer());
  EXPECT_THAT(session.run({model.words.read(), before, update})[0].span<std::string>(),
              ElementsAreArray(kWords));
  EXPECT_THAT(session.run(model.words.read()).span<std::string>(), ElementsAre("a", "b", "c", "d"));
}

class SavedStrings : public testing::Test {
 protected:
  // A checkpoint of kWords.
  std::string saved() {
    Vocabulary model(kWords);
    Session session(model.graph);
    session.run(model.words.initializer());
    return Saver(model.graph).save(session, folder_ / "m");
  }
  TemporaryDirectory folder_;
};

TEST_F(SavedStrings, ComeBackByteByByte) {
  const std::string path = saved();
  Vocabulary model;
  Session session(model.graph);
  Saver(model.graph).restore(session, path);
  EXPECT_THAT(session.run(model.words.read()).span<std::string>(), ElementsAreArray(kWords));
  const CheckpointReader reader(path);
  EXPECT_EQ(reader.index().tensors.at("words").dtype, DType::string);
  EXPECT_EQ(reader.index().tensors.at("words").shape, Shape({2, 2}));
}

TEST_F(SavedStrings, AreFoundDamagedByTheirSum) {
  const std::string path = saved();
  std::string content = bytes_of_file(path + ".safetensors");
  content.back() ^= 1;
  write_bytes(path + ".safetensors", content);
  Vocabulary model;
  Session session(model.graph);
  EXPECT_THAT([&] { Saver(model.graph).restore(session, path); },
              ThrowsMessage<DataLossError>(HasSubstr("the sum of tensor \"words\"")));
}

TEST_F(SavedStrings, DoNotFitAVariableOfNumbers) {
  const std::string path = saved();
  Graph graph;
  const Scope s(graph);
  const Variable words(s.named("words"), zeros(s, DType::u8, {2, 2}));
  Session session(graph);
  EXPECT_THAT(
      [&] { Saver(graph).restore(session, path); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("\"words\" is u8 in the graph but string in the")));
}

TEST_F(SavedStrings, AreWholeOrNotAtAll) {
  Vocabulary model;
  set_rank_state(model.graph, model.words, {.kind = RankState::Kind::own});
  EXPECT_THAT(
      [&] { Saver{model.graph}; },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("variable \"words\" is of strings; it can be saved")));
}

TEST(BroadcastStrings, AreThoseOfRankZeroOnEveryRank) {
  EXPECT_THAT(run_ranks(3,
                        [](Group& group) {
                          Vocabulary model(group.rank() == 0 ? kWords : std::vector<std::string>(4, "other"));
                          const Variable number(model.s.named("number"),
                                                fill(model.s, DType::f32, {}, 1.0F + group.rank()));
                          Session session(model.graph);
                          session.run(global_variables_initializer(model.s));
                          detail::broadcast_state(group, session, {});
                          EXPECT_THAT(session.run(model.words.read()).span<std::string>(),
                                      ElementsAreArray(kWords));
                          EXPECT_EQ(session.run(number.read()).value<float>(), 1);
                        }),
              Each(IsEmpty()));
}

}  // namespace
}  // namespace kolo
