#include <kolo/models/layers.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/inference_form.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/rules.h>

namespace kolo::models {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::ThrowsMessage;

std::vector<std::string> variable_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Variable& variable : trainable_variables(graph)) names.push_back(variable.name());
  return names;
}

TEST(Layers, DenseIsAProductPlusABias) {
  Graph graph;
  Scope s(graph);
  const Output x = constant(s, Tensor::of<float>({1, 2}, {10, 100}));
  const Output y = dense(s, x, 3, "fc1");
  EXPECT_THAT(variable_names(graph), ElementsAre("fc1/w", "fc1/b"));
  const auto variables = trainable_variables(graph);
  const Output w = constant(s, Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  const Output b = constant(s, Tensor::of<float>({3}, {0.5f, 0.25f, 0.125f}));
  Session session(graph);
  session.run({Fetch(assign(s, variables[0], w)), Fetch(assign(s, variables[1], b))});
  EXPECT_THAT(session.run(y).span<float>(), ElementsAre(410.5f, 520.25f, 630.125f));
}

TEST(Layers, Conv2dGivesEachFilterItsBias) {
  Graph graph;
  Scope s(graph);
  const Output x = ones(s, DType::f32, {1, 2, 3, 3});
  const Output y = conv2d(s, x, {.filters = 2, .kernel = {3, 3}, .padding = Padding::valid}, "conv1");
  EXPECT_THAT(variable_names(graph), ElementsAre("conv1/w", "conv1/b"));
  const auto variables = trainable_variables(graph);
  EXPECT_EQ(variables[0].shape(), Shape({2, 2, 3, 3}));
  const Output w = ones(s, DType::f32, {2, 2, 3, 3});
  const Output b = constant(s, Tensor::of<float>({2}, {1, -1}));
  Session session(graph);
  session.run({Fetch(assign(s, variables[0], w)), Fetch(assign(s, variables[1], b))});
  EXPECT_THAT(session.run(y).span<float>(), ElementsAre(19, 17));
}

TEST(Layers, DepthwiseConv2dHasFiltersForEachChannel) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {-1, 3, 8, 8});
  const Output y = depthwise_conv2d(s, x, {.multiplier = 2, .strides = {2, 2}}, "depthwise");
  EXPECT_EQ(y.shape(), Shape({-1, 6, 4, 4}));
  EXPECT_THAT(variable_names(graph), ElementsAre("depthwise/w", "depthwise/b"));
  EXPECT_EQ(trainable_variables(graph)[0].shape(), Shape({3, 2, 3, 3}));
}

TEST(Layers, Conv2dTransposeMakesImagesLarger) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {-1, 3, 8, 8});
  const Output y = conv2d_transpose(s, x, {.filters = 5, .strides = {2, 2}}, "up");
  EXPECT_EQ(y.shape(), Shape({-1, 5, 16, 16}));
  EXPECT_EQ(trainable_variables(graph)[0].shape(), Shape({3, 5, 3, 3}));
  EXPECT_EQ(trainable_variables(graph)[1].shape(), Shape({5}));
}

TEST(Layers, Conv2dGoesWithoutABias) {
  Graph graph;
  Scope s(graph);
  conv2d(s, ones(s, DType::f32, {1, 2, 3, 3}), {.filters = 2, .bias = false}, "conv1");
  EXPECT_THAT(variable_names(graph), ElementsAre("conv1/w"));
}

TEST(Layers, DenseGoesWithoutABias) {
  Graph graph;
  Scope s(graph);
  dense(s, ones(s, DType::f32, {1, 2}), 3, "fc1", false);
  EXPECT_THAT(variable_names(graph), ElementsAre("fc1/w"));
}

TEST(Layers, LayerNormStartsAsPlainNormalization) {
  Graph graph;
  Scope s(graph);
  const Output y = layer_norm(s, constant(s, Tensor::of<float>({2, 2}, {1, 3, -5, 5})), "norm", 0);
  EXPECT_THAT(variable_names(graph), ElementsAre("norm/gamma", "norm/beta"));
  Session session(graph);
  session.run(global_variables_initializer(s));
  EXPECT_THAT(session.run(y).span<float>(), ElementsAre(-1, 1, -1, 1));
}

TEST(Layers, BatchNormTrainsItsScaleAndOffsetOnly) {
  Graph graph;
  Scope s(graph);
  batch_norm(s, ones(s, DType::f32, {2, 3}), "norm");
  EXPECT_THAT(variable_names(graph), ElementsAre("norm/gamma", "norm/beta"));
  EXPECT_EQ(global_variables(graph).size(), 4u);
}

TEST(Layers, BatchNormMovesItsAveragesInTheTrainStepAndUsesThemInInference) {
  Graph graph;
  Scope s(graph);
  const Output x = constant(s, Tensor::of<float>({4, 1}, {1, 2, 3, 6}));  // mean 3, sample variance 14/3
  const Output y = batch_norm(s, x, "norm", {.momentum = 0.5, .epsilon = 0.5});
  const Output inference = inference_form(s, y);
  const Operation step = GradientDescentOptimizer(0).minimize(s, y);
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(y);
  EXPECT_FLOAT_EQ(session.run(inference).span<float>()[3], 6 / std::sqrt(1.5f)) << "no step was made yet";
  session.run(step);
  const float mean = 1.5f, variance = (1 + 14.0f / 3) / 2;
  EXPECT_FLOAT_EQ(session.run(inference).span<float>()[3], (6 - mean) / std::sqrt(variance + 0.5f));
}

// So that a checkpoint of training fits the evaluation graph; on one rank the samples are the same, too.
TEST(Layers, SyncBatchNormHasTheVariablesOfBatchNorm) {
  const auto state_after_a_step = [](bool sync) {
    Graph graph;
    Scope s(graph);
    const Output x = constant(s, Tensor::of<float>({4, 1}, {1, 2, 3, 6}));
    const Output y = sync ? sync_batch_norm(s, x, "norm") : batch_norm(s, x, "norm");
    const Operation step = GradientDescentOptimizer(0.1).minimize(s, square(s, y));
    Session session(graph);
    session.run(global_variables_initializer(s));
    session.run(step);
    std::map<std::string, float> state;
    for (const char* name : {"norm/gamma", "norm/beta", "norm/moving_mean", "norm/moving_variance"})
      state[name] = session.run(graph.find_output(name)).value<float>();
    return state;
  };
  const auto plain = state_after_a_step(false), sync = state_after_a_step(true);
  for (const auto& [name, value] : plain) EXPECT_NEAR(sync.at(name), value, 1e-5) << name;
}

TEST(Layers, WeightsStartInsideGlorotsBoundsAndBiasesAtZero) {
  Graph graph;
  graph.set_seed(7);
  Scope s(graph);
  dense(s, zeros(s, DType::f32, {1, 50}), 100, "fc1");
  Session session(graph);
  session.run(global_variables_initializer(s));
  const float bound = 0.2f;  // √(6 / (50 + 100))
  const auto variables = trainable_variables(graph);
  const Tensor w = session.run(variables[0].read());
  EXPECT_THAT(w.span<float>(), Each(AllOf(Ge(-bound), Le(bound))));
  EXPECT_NE(w.span<float>()[0], w.span<float>()[1]);
  EXPECT_THAT(session.run(variables[1].read()).span<float>(), Each(0.0f));
}

TEST(Layers, NumberLayersOfOneName) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {-1, 4});
  dense(s, dense(s, x, 4, "fc"), 4, "fc");
  EXPECT_THAT(variable_names(graph), ElementsAre("fc/w", "fc/b", "fc_1/w", "fc_1/b"));
}

// torch.nn.LocalResponseNorm(5, alpha=1.5, beta=0.75, k=2) of PyTorch 1.13, whose alpha is that of the mean,
// on x [2,6,1,2] with x[i] = 0.5 · (5·i % 9 − 4).
TEST(Layers, LocalResponseNormIsPyTorchs) {
  Graph graph;
  Scope s(graph);
  Tensor x(DType::f32, {2, 6, 1, 2});
  for (std::int64_t i = 0; i < x.elements(); ++i)
    x.data<float>()[i] = 0.5F * static_cast<float>(5 * i % 9 - 4);
  const std::vector<float> expected = {-0.684759F, 0.216643F, -0.506757F, 0.337838F,  -0.337838F, 0.420527F,
                                       -0.212732F, 0.518458F, 0.0F,       -0.538616F, 0.281606F,  -0.443623F,
                                       0.342379F,  -0.5227F,  0.42492F,   -0.255326F, 0.518458F,  0.0F,
                                       -0.518458F, 0.212732F, -0.42492F,  0.433286F,  -0.342379F, 0.64993F};
  const Output y =
      local_response_norm(s, constant(s, x), {.radius = 2, .bias = 2, .alpha = 0.3, .beta = 0.75});
  EXPECT_THAT(Session(graph).run(y).span<float>(), testing::Pointwise(testing::FloatNear(2e-6F), expected));
}

TEST(Layers, PenaltiesAreAddedToTheLoss) {
  Graph graph;
  Scope s(graph);
  const Output loss = constant(s, 1.0F);
  EXPECT_EQ(with_penalties(s, loss), loss);
  add_penalty(s, constant(s, 0.5F));
  add_penalty(s, constant(s, 0.25F));
  EXPECT_EQ(Session(graph).run(with_penalties(s, loss)).value<float>(), 1.75F);
  EXPECT_THROW(add_penalty(s, constant(s, Tensor::of<float>({1}, {1}))), InvalidArgumentError);
}

TEST(Layers, FlattenKeepsTheBatch) {
  Graph graph;
  Scope s(graph);
  EXPECT_EQ(flatten(s, placeholder(s, DType::f32, {-1, 2, 3, 4})).shape(), Shape({-1, 24}));
}

TEST(Layers, RefuseInputsOfUnknownSize) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {4, -1});
  EXPECT_THAT([&] { dense(s, x, 4, "fc1"); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("layer \"fc1\""), HasSubstr("[4,?]"))));
  EXPECT_THAT([&] { conv2d(s, x, {.filters = 4}, "conv1"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("4 dimensions")));
  EXPECT_THAT(
      [&] {
        flatten(s, placeholder(s, DType::f32, {4, 5, -1}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("[4,5,?]")));
}

}  // namespace
}  // namespace kolo::models
