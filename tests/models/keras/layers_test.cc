#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/models/keras/core_layers.h>
#include <kolo/models/keras/image_layers.h>
#include <kolo/models/keras/merge_layers.h>
#include <kolo/models/keras/normalization_layers.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::ThrowsMessage;

Shape shape_of(Workspace& ws, const Layer& layer, const Shape& input) {
  return layer(Input(ws, input)).shape();
}

// The layer's results for one input, with the weights given.
std::vector<float> results(const Layer& layer, const Tensor& x, const std::vector<Tensor>& weights = {}) {
  Workspace ws;
  const auto& dims = x.shape().dims();
  const KerasTensor input = Input(ws, Shape(std::vector<std::int64_t>(dims.begin() + 1, dims.end())));
  const KerasTensor y = layer(input);
  if (!weights.empty()) layer.set_weights(weights);
  return elements(value(ws, y, input, x));
}

TEST(Dense, MultipliesAlongTheLastAxis) {
  EXPECT_THAT(results(Dense(1, {.activation = "relu"}), floats({2, 2}, {1, 2, -3, 1}),
                      {floats({2, 1}, {1, 10}), floats({1}, {-1})}),
              ElementsAre(20, 6));
  Workspace ws;
  const Dense dense(5);
  EXPECT_EQ(shape_of(ws, dense, {7, 3}), (Shape{-1, 7, 5}));
  EXPECT_THAT(dense.weight_names(), ElementsAre("dense_1/kernel", "dense_1/bias"));
  EXPECT_EQ(dense.count_params(), 20);
}

// KERAS.md, row 32.
TEST(Conv2D, HasTheShapesOfItsPadding) {
  Workspace ws;
  EXPECT_EQ(shape_of(ws, Conv2D(8, 3), {1, 5, 6}), (Shape{-1, 8, 3, 4}));
  EXPECT_EQ(shape_of(ws, Conv2D(8, {3, 3}, {.strides = 2, .padding = "same"}), {1, 5, 6}),
            (Shape{-1, 8, 3, 3}));
  EXPECT_EQ(shape_of(ws, Conv2DTranspose(4, 3, {.strides = 2}), {8, 3, 4}), (Shape{-1, 4, 7, 9}));
  EXPECT_EQ(shape_of(ws, Conv2DTranspose(4, 3, {.strides = 2, .padding = "same"}), {8, 3, 4}),
            (Shape{-1, 4, 6, 8}));
  EXPECT_EQ(shape_of(ws, DepthwiseConv2D(3, {.depth_multiplier = 2}), {3, 5, 5}), (Shape{-1, 6, 3, 3}));
  EXPECT_THAT([] { Conv2D(1, 3, {.padding = "full"}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("full")));
}

TEST(Conv2D, GivesTheSameInEitherLayout) {
  const Tensor kernel = floats({1, 2, 1, 1}, {1, 10}), bias = floats({1}, {0.5F});
  Workspace first, last({.data_format = "channels_last"});
  const Conv2D a(1, 1), b(1, 1);
  const KerasTensor x = Input(first, {2, 1, 2}), y = Input(last, {1, 2, 2});
  const KerasTensor ax = a(x), by = b(y);
  a.set_weights({kernel, bias});
  b.set_weights({kernel, bias});
  EXPECT_THAT(elements(value(first, ax, x, floats({1, 2, 1, 2}, {1, 2, 3, 4}))), ElementsAre(31.5F, 42.5F));
  EXPECT_THAT(elements(value(last, by, y, floats({1, 1, 2, 2}, {1, 3, 2, 4}))), ElementsAre(31.5F, 42.5F));
  EXPECT_EQ(by.shape(), (Shape{-1, 1, 2, 1}));
}

TEST(Pooling, TakesTheLargestOrTheMean) {
  const Tensor x = floats({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 9});
  EXPECT_THAT(results(MaxPooling2D(), x), ElementsAre(6, 9));
  EXPECT_THAT(results(AveragePooling2D(2, {.strides = 1}), x), ElementsAre(3.5F, 4.5F, 5.75F));
  EXPECT_THAT(results(AveragePooling2D(3, {.padding = "same"}), floats({1, 1, 1, 4}, {1, 2, 3, 9})),
              ElementsAre(1.5F, 6));  // of real elements only
  EXPECT_THAT(results(GlobalAveragePooling2D(), x), ElementsAre(37.F / 8));
  EXPECT_THAT(results(GlobalMaxPooling2D(), x), ElementsAre(9));
}

TEST(ImageLayers, ChangeTheSize) {
  const Tensor x = floats({1, 1, 1, 2}, {1, 2});
  EXPECT_THAT(results(UpSampling2D({1, 2}), x), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(results(ZeroPadding2D({0, 0, 1, 2}), x), ElementsAre(0, 1, 2, 0, 0));
  EXPECT_THAT(results(Cropping2D({0, 0, 1, 0}), x), ElementsAre(2));
}

TEST(ShapeLayers, MoveElementsAsTheyLie) {
  const Tensor x = floats({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(results(Flatten(), x), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(results(Permute({2, 1}), x), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(results(RepeatVector(2), floats({1, 2}, {1, 2})), ElementsAre(1, 2, 1, 2));
  Workspace ws;
  EXPECT_EQ(shape_of(ws, Reshape({3, -1}), {2, 6}), (Shape{-1, 3, 4}));
  EXPECT_THAT(
      [&] {
        shape_of(ws, Reshape({5}), {2, 3});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("total size of new array must be unchanged")));
}

TEST(Activations, HaveTheirFormulas) {
  const Tensor x = floats({1, 3}, {-2, 0.5F, 3});
  const auto of = [&](const char* name) { return results(Activation(name), x); };
  EXPECT_THAT(of("linear"), ElementsAre(-2, 0.5F, 3));
  EXPECT_THAT(of("hard_sigmoid"), Pointwise(FloatNear(1e-6F), {0.1F, 0.6F, 1.F}));
  EXPECT_THAT(of("softsign"), Pointwise(FloatNear(1e-6F), {-2.F / 3, 1.F / 3, 0.75F}));
  EXPECT_THAT(results(ReLU({.max_value = 2, .negative_slope = 0.1, .threshold = 1}), x),
              Pointwise(FloatNear(1e-6F), {-0.3F, -0.05F, 2.F}));
  EXPECT_THAT(results(LeakyReLU(), x), Pointwise(FloatNear(1e-6F), {-0.6F, 0.5F, 3.F}));
  EXPECT_THAT(results(PReLU(), x, {floats({3}, {0.5F, 1, 1})}), ElementsAre(-1, 0.5F, 3));
  EXPECT_THAT([] { Dense(1, {.activation = "rellu"}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Unknown activation function: rellu; did you mean \"relu\"")));
}

TEST(Embedding, TakesRowsOfItsTable) {
  EXPECT_THAT(results(Embedding(3, 2), floats({1, 2}, {2, 0}), {floats({3, 2}, {0, 1, 10, 11, 20, 21})}),
              ElementsAre(20, 21, 0, 1));
}

TEST(BatchNormalization, UsesItsAveragesInInference) {
  EXPECT_THAT(results(BatchNormalization({.epsilon = 0}), floats({1, 1}, {5}),
                      {floats({1}, {2}), floats({1}, {1}), floats({1}, {3}), floats({1}, {4})}),
              ElementsAre(3));
  Workspace ws;
  const BatchNormalization norm({.scale = false});
  norm(Input(ws, {4, 2, 2}));
  EXPECT_THAT(norm.weight_names(),
              ElementsAre("batch_normalization_1/beta", "batch_normalization_1/moving_mean",
                          "batch_normalization_1/moving_variance"));
}

TEST(Dropout, LeavesInferenceAlone) {
  EXPECT_THAT(results(Dropout(0.9), floats({1, 2}, {1, 2})), ElementsAre(1, 2));
  EXPECT_THAT([] { Dropout(1); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("[0, 1)")));
}

TEST(Noise, LeavesInferenceAlone) {
  Workspace ws;
  const KerasTensor x = Input(ws, {3});
  const Tensor fed = floats({1, 3}, {1, -2, 3});
  EXPECT_EQ(elements(value(ws, GaussianNoise(.5)(x), x, fed)), elements(fed));
  EXPECT_EQ(elements(value(ws, GaussianDropout(.5)(x), x, fed)), elements(fed));
}

// x·N(1, √(rate/(1 − rate))) of ones: mean 1 and variance 1 for rate 1/2.
TEST(GaussianDropout, ScalesByNoiseInTraining) {
  Workspace ws;
  const KerasTensor x = Input(ws, {1000});
  Tensor ones(DType::f32, {100, 1000});
  std::fill_n(ones.data<float>(), ones.elements(), 1.F);
  const Tensor y = ws.session().run(GaussianDropout(.5)(x).output(), {{x.output(), ones}});
  double sum = 0, squares = 0;
  for (const float number : elements(y)) sum += number, squares += number * number;
  const double mean = sum / 1e5;
  EXPECT_NEAR(mean, 1, .02);
  EXPECT_NEAR(squares / 1e5 - mean * mean, 1, .03);
}

TEST(Noise, RefusesRatesAndDeviationsOutOfRange) {
  EXPECT_THROW(GaussianDropout(1), InvalidArgumentError);
  EXPECT_THROW(GaussianNoise(-.1), InvalidArgumentError);
}

TEST(MergeLayers, CombineTheirInputs) {
  Workspace ws;
  const KerasTensor x = Input(ws, {2});
  const KerasTensor twice = Lambda([](const Scope&, const Outputs& in) { return in[0]; })(x);
  const Tensor fed = floats({1, 2}, {1, 3});
  const auto of = [&](const Layer& layer) { return elements(value(ws, layer({x, twice}), x, fed)); };
  EXPECT_THAT(of(Add()), ElementsAre(2, 6));
  EXPECT_THAT(of(Subtract()), ElementsAre(0, 0));
  EXPECT_THAT(of(Multiply()), ElementsAre(1, 9));
  EXPECT_THAT(of(Average()), ElementsAre(1, 3));
  EXPECT_THAT(of(Concatenate()), ElementsAre(1, 3, 1, 3));
  EXPECT_THAT(of(Dot(1)), ElementsAre(10));
  EXPECT_THAT(of(Dot(1, true)), Pointwise(FloatNear(1e-6F), {1.F}));
}

// By hand: element (i, j) is Σ_k a[k][i] · b[j][k].
TEST(MergeLayers, DotTakesItsTwoAxesInBraces) {
  Workspace ws;
  const KerasTensor a = Input(ws, {2, 3}), b = Input(ws, {3, 2});
  const KerasTensor dot = Dot({1, 2})({a, b});
  EXPECT_EQ(dot.shape(), (Shape{-1, 3, 3}));
  const Tensor found = ws.session().run(dot.output(), {{a.output(), floats({1, 2, 3}, {1, 2, 3, 4, 5, 6})},
                                                       {b.output(), floats({1, 3, 2}, {1, 0, 2, -1, 0, 3})}});
  EXPECT_THAT(elements(found), ElementsAre(1, -2, 12, 2, -1, 15, 3, 0, 18));
  EXPECT_THROW(Dot({1, 2, 2}), InvalidArgumentError);
}

TEST(MergeLayers, SayWhatDoesNotGoTogether) {
  Workspace ws;
  const KerasTensor x = Input(ws, {2, 3}), y = Input(ws, {3, 3});
  EXPECT_THAT([&] { Add()(x); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("A merge layer should be called on a list of at least 2 inputs. Got 1 inputs.")));
  EXPECT_THAT(
      [&] {
        Concatenate()({x, y});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr(
          "A `Concatenate` layer requires inputs with matching shapes except for the concat axis.")));
  EXPECT_EQ(Concatenate(1)({x, y}).shape(), (Shape{-1, 5, 3}));
}

TEST(Layer, StaysInOneWorkspace) {
  Workspace a, b;
  const Dense dense(1);
  dense(Input(a, {2}));
  EXPECT_THAT([&] { dense(Input(b, {2})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("belongs to another workspace")));
}

TEST(Layer, ChecksTheWeightsThatItIsGiven) {
  Workspace ws;
  const Dense dense(2);
  dense(Input(ws, {3}));
  EXPECT_THAT(
      [&] {
        dense.set_weights({floats({2}, {1, 2})});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("but the layer was expecting 2 weights")));
  EXPECT_THAT(
      [&] {
        dense.set_weights({floats({2}, {1, 2}), floats({2}, {1, 2})});
      },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("Layer weight shape (3, 2) not compatible with provided weight shape (2,)")));
}

}  // namespace
}  // namespace kolo::keras
