#include <kolo/models/zoo.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/models/models.h>
#include <kolo/optimizer/rules.h>

namespace kolo::models {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;
using testing::ThrowsMessage;

// Numbers from −0.5 to 0.5 for weights that PyTorch has as [rows, cols], as [cols, rows].
Tensor transposed(std::int64_t rows, std::int64_t cols, std::int64_t shift) {
  Tensor made(DType::f32, {cols, rows});
  for (std::int64_t i = 0; i < rows * cols; ++i)
    made.data<float>()[i % cols * rows + i / cols] = 0.1F * static_cast<float>((7 * i + shift) % 11 - 5);
  return made;
}

// torch.nn.LSTM(2, 3) of PyTorch 1.13, weight_ih_l0, weight_hh_l0 and bias_ih_l0 filled with 0.1 · ((7·i + k)
// % 11 − 5) for k = 1, 2, 3, bias_hh_l0 with 0, on x [3, 2, 2] with k = 4.
TEST(LstmLayer, ComputesWhatPyTorchDoes) {
  constexpr std::int64_t kSteps = 3, kSequences = 2, kInputs = 2, kUnits = 3;
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {kSteps * kSequences, kInputs});
  const Output h = lstm_layer(s, x, kSteps, kUnits, "lstm");
  std::vector<Operation> assigned;
  for (const Variable& variable : trainable_variables(graph)) {
    Tensor value = variable.name() == "lstm/w"   ? transposed(4 * kUnits, kInputs, 1)
                   : variable.name() == "lstm/u" ? transposed(4 * kUnits, kUnits, 2)
                                                 : transposed(4 * kUnits, 1, 3).reshaped({4 * kUnits});
    assigned.push_back(Operation(assign(s, variable, constant(s, value))));
  }
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(group(s, assigned));
  const Tensor fed = transposed(1, kSteps * kSequences * kInputs, 4).reshaped({kSteps * kSequences, kInputs});
  const std::vector<float> expected = {-0.062578F, 0.089272F, -0.072705F, -0.05075F,  0.057726F, -0.053064F,
                                       -0.075933F, 0.061128F, -0.083294F, -0.104412F, 0.170254F, 0.000631F,
                                       -0.101266F, 0.091303F, -0.124821F, -0.107063F, 0.137034F, -0.066364F};
  EXPECT_THAT(session.run(h, {{x, fed}}).span<float>(), Pointwise(FloatNear(2e-6F), expected));
}

TEST(LstmLayer, StartsWithOpenForgetGates) {
  Graph graph;
  Scope s(graph);
  lstm_layer(s, placeholder(s, DType::f32, {4, 2}), 2, 2, "lstm");
  const Variable b = trainable_variables(graph).back();
  ASSERT_EQ(b.name(), "lstm/b");
  Session session(graph);
  session.run(global_variables_initializer(s));
  EXPECT_THAT(session.run(b.read()).span<float>(), testing::ElementsAre(0, 0, 1, 1, 0, 0, 0, 0));
}

TEST(LstmLayer, RefusesWhatCannotBe) {
  Graph graph;
  Scope s(graph);
  EXPECT_THAT(
      [&] {
        lstm_layer(s, placeholder(s, DType::f32, {4, -1}), 2, 2, "lstm");
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("layer \"lstm\"")));
  EXPECT_THROW(lstm_layer(s, placeholder(s, DType::f32, {4, 2}), 3, 2, "lstm"), InvalidArgumentError);
}

TEST(Lstm, HasTheParametersOfItsSizes) {
  Graph graph;
  Scope s(graph);
  const Model& model = find_model("lstm");
  EXPECT_EQ(model.build(s, placeholder(s, DType::i32, {-1, 64})).shape(), (Shape{-1, 65}));
  std::int64_t parameters = 0;
  for (const Variable& variable : trainable_variables(graph)) parameters += variable.shape().elements();
  EXPECT_EQ(parameters, 65 * 256 + 2 * (8 * 256 * 256 + 4 * 256) + 256 * 65 + 65);
  EXPECT_EQ(parameters, 1083969);
}

constexpr std::int64_t kBatch = 4, kSteps = 12, kVocabulary = 5;

// The token behind one is told by the one before it alone.
TEST(Lstm, LearnsWhatTheTokenBeforeTells) {
  Graph graph;
  graph.set_seed(1);
  Scope s(graph);
  const Output tokens = placeholder(s, DType::i32, {kBatch, kSteps}),
               labels = placeholder(s, DType::i32, {kBatch * kSteps});
  const Output loss = softmax_cross_entropy(
      s, lstm(s, tokens, {.vocabulary = kVocabulary, .layers = 2, .width = 24}), labels);
  AdamOptimizer optimizer(0.02F);
  const Operation train = optimizer.minimize(s, loss);
  Tensor fed(DType::i32, {kBatch, kSteps}), next(DType::i32, {kBatch * kSteps});
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < fed.elements(); ++i) {
    state = state * 1664525 + 1013904223;
    fed.data<std::int32_t>()[i] = static_cast<std::int32_t>(state >> 16) % kVocabulary;
    next.data<std::int32_t>()[i] = i % kSteps == 0 ? 0 : fed.data<std::int32_t>()[i - 1];
  }
  const Feeds feeds{{tokens, fed}, {labels, next}};
  Session session(graph);
  session.run(global_variables_initializer(s));
  EXPECT_NEAR(session.run(loss, feeds).value<float>(), std::log(5.0), 0.3);
  for (int i = 0; i < 150; ++i) session.run(train, feeds);
  EXPECT_LT(session.run(loss, feeds).value<float>(), 0.1F);
}

TEST(Lstm, RefusesWhatCannotBe) {
  Graph graph;
  Scope s(graph);
  const Output tokens = placeholder(s, DType::i32, {-1, 8});
  EXPECT_THAT([&] { find_model("lstm").build(s, tokens, {.heads = 2}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("lstm: its heads cannot be chosen")));
  EXPECT_THAT([&] { lstm(s, tokens, {.width = 0}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("width 0")));
  EXPECT_THAT(
      [&] {
        lstm(s, placeholder(s, DType::f32, {-1, 8}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("must be i32 [N,T]")));
}

}  // namespace
}  // namespace kolo::models
