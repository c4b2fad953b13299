#include <kolo/models/zoo.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/models/models.h>
#include <kolo/optimizer/rules.h>

namespace kolo::models {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kBatch = 3, kPlaces = 16, kVocabulary = 11;

// A small one on sequences in which each token follows from the one before.
struct Small {
  Small()
      : tokens(placeholder(s, DType::i32, {kBatch, kPlaces})),
        logits(gpt(s, tokens, {.vocabulary = kVocabulary, .layers = 2, .width = 32, .heads = 4})) {
    graph.set_seed(1);
  }
  static Tensor sequences(std::int32_t shift) {
    Tensor made(DType::i32, {kBatch, kPlaces});
    for (std::int64_t row = 0; row < kBatch; ++row)
      for (std::int64_t i = 0; i < kPlaces; ++i)
        made.data<std::int32_t>()[row * kPlaces + i] =
            static_cast<std::int32_t>((row + 3 * (i + shift)) % kVocabulary);
    return made;
  }
  Graph graph;
  Scope s{graph};
  Output tokens, logits;
};

TEST(Gpt, HasAsManyParametersAsThePeer) {
  Graph graph;
  Scope s(graph);
  const Model& model = find_model("gpt");
  EXPECT_EQ(model.build(s, placeholder(s, DType::i32, {-1, 128})).shape(), Shape({-1, 65}));
  EXPECT_EQ(model.labels_per_sample(), 128);
  std::int64_t parameters = 0;
  for (const Variable& variable : trainable_variables(graph)) parameters += variable.shape().elements();
  EXPECT_EQ(parameters, 3225600);
}

std::int64_t parameters_of(std::int64_t context, const GptOptions& options) {
  Graph graph;
  Scope s(graph);
  const Output logits = gpt(s, placeholder(s, DType::i32, {-1, context}), options);
  EXPECT_EQ(logits.shape(), Shape({-1, options.vocabulary}));
  std::int64_t parameters = 0;
  for (const Variable& variable : trainable_variables(graph)) parameters += variable.shape().elements();
  return parameters;
}

// V·D + T·D + L·(12·D² + 13·D) + 2·D, and V·D more where the last matrix is one of its own. 124,439,808 is
// what Hugging Face's "gpt2" has.
TEST(Gpt, HasTheParametersOfItsSizes) {
  const auto closed_form = [](std::int64_t context, const GptOptions& o) {
    const std::int64_t v = o.vocabulary, d = o.width;
    return (o.tied ? 1 : 2) * v * d + context * d + o.layers * (12 * d * d + 13 * d) + 2 * d;
  };
  const GptOptions gpt2{.vocabulary = 50257, .layers = 12, .width = 768, .heads = 12, .tied = true};
  EXPECT_EQ(closed_form(1024, gpt2), 124439808);
  EXPECT_EQ(parameters_of(1024, gpt2), 124439808);
  for (const GptOptions& options : {GptOptions{.vocabulary = 65, .layers = 12, .width = 768, .heads = 12},
                                    GptOptions{.vocabulary = 7, .layers = 1, .width = 6, .heads = 3}})
    EXPECT_EQ(parameters_of(32, options), closed_form(32, options));
}

TEST(Gpt, TakesItsSizeByName) {
  Graph graph;
  Scope s(graph);
  const ModelSize size{.classes = 11, .layers = 2, .width = 24, .heads = 3};
  EXPECT_EQ(find_model("gpt").build(s, placeholder(s, DType::i32, {-1, 8}), size).shape(), Shape({-1, 11}));
  std::int64_t parameters = 0;
  for (const Variable& variable : trainable_variables(graph)) parameters += variable.shape().elements();
  EXPECT_EQ(parameters, parameters_of(8, {.vocabulary = 11, .layers = 2, .width = 24, .heads = 3}));
}

TEST(Gpt, LearnsWithOneMatrixForTokensAndLogits) {
  Graph graph;
  graph.set_seed(1);
  Scope s(graph);
  const Output tokens = placeholder(s, DType::i32, {kBatch, kPlaces}),
               labels = placeholder(s, DType::i32, {kBatch * kPlaces});
  const Output loss = softmax_cross_entropy(
      s, gpt(s, tokens, {.vocabulary = kVocabulary, .layers = 1, .width = 32, .heads = 2, .tied = true}),
      labels);
  AdamOptimizer optimizer(0.01f);
  const Operation train = optimizer.minimize(s, loss);
  const Feeds feeds{{tokens, Small::sequences(0)},
                    {labels, Small::sequences(1).reshaped({kBatch * kPlaces})}};
  Session session(graph);
  session.run(global_variables_initializer(s));
  for (int i = 0; i < 80; ++i) session.run(train, feeds);
  EXPECT_LT(session.run(loss, feeds).value<float>(), 0.1f);
}

TEST(Gpt, KnowsNothingOfWhatComesLater) {
  Small net;
  Session session(net.graph);
  session.run(global_variables_initializer(net.s));
  Tensor tokens = Small::sequences(0);
  const Tensor before = session.run(net.logits, {{net.tokens, tokens}});
  constexpr std::int64_t kChanged = 9;
  tokens.data<std::int32_t>()[kChanged] = (tokens.data<std::int32_t>()[kChanged] + 1) % kVocabulary;
  const Tensor after = session.run(net.logits, {{net.tokens, tokens}});
  float earlier = 0, later = 0, other_rows = 0;
  for (std::int64_t i = 0; i < before.elements(); ++i) {
    const std::int64_t place = i / kVocabulary;
    float& most = place >= kPlaces ? other_rows : place < kChanged ? earlier : later;
    most = std::max(most, std::abs(before.data<float>()[i] - after.data<float>()[i]));
  }
  EXPECT_EQ(earlier, 0);
  EXPECT_EQ(other_rows, 0);
  EXPECT_GT(later, 0);
}

TEST(Gpt, LearnsWhatComesNext) {
  Small net;
  const Output labels = placeholder(net.s, DType::i32, {kBatch * kPlaces});
  const Output loss = softmax_cross_entropy(net.s, net.logits, labels);
  AdamOptimizer optimizer(0.01f);
  const Operation train = optimizer.minimize(net.s, loss);
  const Feeds feeds{{net.tokens, Small::sequences(0)},
                    {labels, Small::sequences(1).reshaped({kBatch * kPlaces})}};
  Session session(net.graph);
  session.run(global_variables_initializer(net.s));
  EXPECT_NEAR(session.run(loss, feeds).value<float>(), std::log(static_cast<double>(kVocabulary)), 0.2);
  for (int i = 0; i < 60; ++i) session.run(train, feeds);
  EXPECT_LT(session.run(loss, feeds).value<float>(), 0.1f);
}

TEST(Gpt, RefusesWhatCannotBe) {
  Graph graph;
  Scope s(graph);
  const Output tokens = placeholder(s, DType::i32, {-1, 8});
  EXPECT_THAT([&] { gpt(s, tokens, {.width = 30, .heads = 4}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("width 30, heads 4")));
  EXPECT_THAT(
      [&] {
        gpt(s, placeholder(s, DType::f32, {-1, 8}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("must be i32 [N,T]")));
}

}  // namespace
}  // namespace kolo::models
