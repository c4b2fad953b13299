#include <kolo/models/keras/model.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/models/keras/image_layers.h>
#include <kolo/models/keras/merge_layers.h>
#include <kolo/models/keras/normalization_layers.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

std::vector<std::string> names(const Model& model) {
  std::vector<std::string> all;
  for (const Layer& layer : model.layers()) all.push_back(layer.name());
  return all;
}

// KERAS.md, row 1: the network of Keras' MNIST example.
TEST(Sequential, CountsTheParametersOfTheMnistNetwork) {
  Workspace ws;
  const Sequential net(
      ws, {Conv2D(32, {3, 3}, {.activation = "relu", .input_shape = {1, 28, 28}}),
           Conv2D(64, {3, 3}, {.activation = "relu"}), MaxPooling2D(), Dropout(.25), Flatten(),
           Dense(128, {.activation = "relu"}), Dropout(.5), Dense(10, {.activation = "softmax"})});
  EXPECT_EQ(net.count_params(), 320 + 18496 + 1179776 + 1290);
  EXPECT_THAT(net.summary(),
              AllOf(HasSubstr("Total params: 1,199,882\n"), HasSubstr("(None, 64, 24, 24)"),
                    HasSubstr("flatten_1 (Flatten)          (None, 9216)              0         \n")));
}

// Row 2.
TEST(Sequential, NamesLayersByTheirClassAndNumber) {
  Workspace ws;
  const Sequential net(
      ws, {Dense(2, {.input_shape = {3}}), Dense(2), Dense(2, {.name = "out"}), LeakyReLU(), LeakyReLU()});
  EXPECT_THAT(names(net), ElementsAre("dense_1", "dense_2", "out", "leaky_re_lu_1", "leaky_re_lu_2"));
  EXPECT_THAT(net.input_names(), ElementsAre("dense_1_input"));
  EXPECT_EQ(net.name(), "sequential_1");
  EXPECT_EQ(Sequential(ws, {Dense(1)}).layers()[0].name(), "dense_3");
}

// Row 3, and the lines around.
TEST(Summary, CutsFieldsToTheirColumns) {
  Workspace ws;
  const Sequential net(ws, {Conv2D(32, 3, {.input_shape = {3, 8, 8}}), GlobalAveragePooling2D()});
  EXPECT_EQ(net.summary(),
            "_________________________________________________________________\n"
            "Layer (type)                 Output Shape              Param #   \n"
            "=================================================================\n"
            "conv2d_1 (Conv2D)            (None, 32, 6, 6)          896       \n"
            "_________________________________________________________________\n"
            "global_average_pooling2d_1 ( (None, 32)                0         \n"
            "=================================================================\n"
            "Total params: 896\n"
            "Trainable params: 896\n"
            "Non-trainable params: 0\n"
            "_________________________________________________________________\n");
}

TEST(Summary, NamesWhatLayersOfAGraphTake) {
  Workspace ws;
  const KerasTensor a = Input(ws, {4}), b = Input(ws, {4});
  const Dense shared(3);
  const Model net({a, b}, {Concatenate()({shared(a), shared(b)})});
  const std::string text = net.summary();
  EXPECT_THAT(
      text, StartsWith(std::string(98, '_') + "\nLayer (type)                    Output Shape         Param "
                                              "#     Connected to                     \n"));
  EXPECT_THAT(text,
              HasSubstr("dense_1 (Dense)                 (None, 3)            15          input_1[0][0]      "
                        "              \n" +
                        std::string(65, ' ') + "input_2[0][0]                    \n"));
  EXPECT_THAT(text, HasSubstr("dense_1[0][0]"));
  EXPECT_THAT(text, HasSubstr("dense_1[1][0]"));
}

TEST(Summary, CountsFrozenWeightsApart) {
  Workspace ws;
  const Sequential net(ws, {Dense(2, {.trainable = false, .input_shape = {1}}), BatchNormalization()});
  EXPECT_THAT(net.summary(),
              AllOf(HasSubstr("Trainable params: 4\n"), HasSubstr("Non-trainable params: 8\n")));
}

TEST(Model, OrdersLayersByDepth) {
  Workspace ws;
  const KerasTensor a = Input(ws, {2}), b = Input(ws, {2});
  const KerasTensor deep = Dense(2)(Dense(2)(a));
  const Model net({a, b}, {Add()({deep, b})});
  EXPECT_THAT(names(net), ElementsAre("input_1", "dense_1", "input_2", "dense_2", "add_1"));
  EXPECT_THAT(net.output_names(), ElementsAre("add_1"));
  EXPECT_EQ(net.name(), "model_1");
}

TEST(Model, IsALayerThatSharesItsWeights) {
  Workspace ws;
  const Sequential inner(ws, {Dense(1, {.use_bias = false, .input_shape = {2}})});
  const KerasTensor a = Input(ws, {2});
  const Model outer(a, Add()({inner(a), inner(a)}));
  inner.set_weights({floats({2, 1}, {1, 10})});
  EXPECT_THAT(elements(value(ws, outer.outputs()[0], a, floats({1, 2}, {1, 2}))), ElementsAre(42));
  EXPECT_EQ(outer.count_params(), 2);
  EXPECT_EQ(outer.get_weights().size(), 1U);
}

TEST(Model, SaysWhatIsWrongWithItsTensors) {
  Workspace ws;
  const KerasTensor a = Input(ws, {2}), b = Input(ws, {2});
  const KerasTensor y = Dense(1)(a), z = Dense(1, {.name = "dense_1"})(y);
  EXPECT_THAT([&] { Model(b, y); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr(
                  "Graph disconnected: cannot obtain value for tensor input_1[0][0] at layer \"dense_1\".")));
  EXPECT_THAT(
      [&] {
        Model({a, a}, {y});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("The list of inputs passed to the model is redundant.")));
  EXPECT_THAT([&] { Model(a, z); }, ThrowsMessage<InvalidArgumentError>(
                                        HasSubstr("The name \"dense_1\" is used 2 times in the model. All "
                                                  "layer names should be unique.")));
  const Model net(a, y);
  EXPECT_THAT([&] { net.get_layer("x"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("No such layer: x")));
  EXPECT_THAT([&] { net.get_layer(5); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Was asked to retrieve layer at index 5 but model only has 2 layers.")));
}

TEST(Sequential, IsNotBuiltBeforeItKnowsItsInput) {
  Workspace ws;
  const Sequential net(ws, {Dense(2)});
  EXPECT_THAT([&] { net.summary(); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("This model has not yet been built.")));
  net(Input(ws, {3}));
  EXPECT_EQ(net.count_params(), 8);
  net.add(Dense(1));
  EXPECT_EQ(net.count_params(), 11);
  net.pop();
  EXPECT_EQ(net.count_params(), 8);
  net.pop();
  EXPECT_THAT([&] { net.pop(); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("There are no layers in the model.")));
}

TEST(Json, ReadsWhatItWrote) {
  Workspace ws, other;
  const KerasTensor a = Input(ws, {4}), b = Input(ws, {1, 6, 6});
  const Sequential inner(ws, {Dense(3, {.kernel_initializer = "he_normal",
                                        .kernel_regularizer = l2(0.1),
                                        .kernel_constraint = max_norm(3),
                                        .input_shape = {4}}),
                              BatchNormalization(), PReLU(), ELU(0.5), ReLU({.max_value = 6})});
  const KerasTensor images =
      Flatten()(ZeroPadding2D(1)(UpSampling2D()(MaxPooling2D(3)(Conv2D(2, 3, {.padding = "same"})(b)))));
  const Model net({a, b}, {Concatenate()({inner(a), inner(a), Dropout(.1)(images)}), Dot(1)({a, a})});
  const std::string json = net.to_json();
  const Model read = model_from_json(other, json);
  EXPECT_EQ(read.to_json(), json);
  EXPECT_EQ(read.summary(), net.summary());
}

TEST(Json, NamesLayersThatItDoesNotKnow) {
  Workspace ws;
  EXPECT_THAT(
      [&] {
        model_from_json(ws,
                        R"({"class_name": "Sequential", "config": [{"class_name": "LSTM", "config": {}}]})");
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Unknown layer: LSTM")));
  EXPECT_THAT([&] { model_from_json(ws, "{"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("no JSON of a model")));
}

TEST(Json, GivesLambdasTheirFunctionsByName) {
  Workspace ws, other;
  const LambdaFunction same = [](const Scope&, const Outputs& in) { return in[0]; };
  const Sequential net(ws, {Lambda(same, "same", {.input_shape = {2}})});
  EXPECT_EQ(model_from_json(other, net.to_json(), {.functions = {{"same", same}}}).to_json(), net.to_json());
  EXPECT_THAT([&] { model_from_json(other, net.to_json()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Unknown function: same")));
}

}  // namespace
}  // namespace kolo::keras
