#include <kolo/models/keras/core_layers.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/models/keras/model.h>
#include <tests/core/same_bits.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// What Dense is, and what a user would write of it.
struct OwnDense : OwnLayer {
  explicit OwnDense(std::int64_t units) : units(units) {}
  void build(const std::vector<Shape>& in) override {
    kernel = add_weight("kernel", {in[0].dim(-1), units}, {.regularizer = "l2"});
    bias = add_weight("bias", {units}, {.initializer = "zeros"});
  }
  Outputs compute(const Scope& s, const Outputs& in) override {
    return {bias_add(s, matmul(s, in[0], kernel), bias)};
  }
  std::string config() const override { return "{\"units\": " + std::to_string(units) + "}"; }

  std::int64_t units;
  Variable kernel, bias;
};

Layer own_dense(std::int64_t units, const LayerOptions& options = {}) {
  return own_layer("OwnDense", std::make_shared<OwnDense>(units), options);
}

const CustomObjects kOwn = {.layers = {{"OwnDense", [](const std::string& config) {
                                          return own_dense(nlohmann::json::parse(config).at("units"),
                                                           layer_options_from(config));
                                        }}}};

Tensor numbers(const Shape& shape, int step) {
  Tensor x(DType::f32, shape);
  for (std::int64_t i = 0; i < x.elements(); ++i) x.data<float>()[i] = static_cast<float>(i * step % 11) / 11;
  return x;
}

void train(const Model& model) {
  model.compile({.optimizer = SGD({.lr = 0.1, .momentum = 0.9}), .loss = "mse"});
  for (int i = 0; i < 5; ++i) model.train_on_batch(numbers({6, 3}, 7 + i), numbers({6, 2}, 3 + i));
}

TEST(OwnLayer, TrainsAsTheLayerThatItImitates) {
  Workspace ws, other;
  const Sequential own(ws,
                       {own_dense(4, {.name = "first", .input_shape = {3}}), own_dense(2, {.name = "last"})});
  const Sequential theirs(other, {Dense(4, {.kernel_regularizer = "l2", .input_shape = {3}}),
                                  Dense(2, {.kernel_regularizer = "l2"})});
  EXPECT_EQ(own.count_params(), 3 * 4 + 4 + 4 * 2 + 2);
  EXPECT_THAT(own.weight_names(), ElementsAre("first/kernel", "first/bias", "last/kernel", "last/bias"));
  EXPECT_THAT(own.summary(), HasSubstr("first (OwnDense)"));
  theirs.set_weights(own.get_weights());
  train(own);
  train(theirs);
  expect_same_bits(own.get_weights(), theirs.get_weights());
}

TEST(OwnLayer, IsSavedAndLoadedWithItsWeights) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("own_layer_" + std::to_string(getpid()))).string();
  Workspace ws, again;
  const Sequential own(ws, {own_dense(4, {.input_shape = {3}}), Dense(2)});
  train(own);
  own.save(path);
  const Model loaded = load_model(again, path, {.custom = kOwn});
  expect_same_bits(own.get_weights(), loaded.get_weights());
  own.train_on_batch(numbers({6, 3}, 5), numbers({6, 2}, 5));
  loaded.train_on_batch(numbers({6, 3}, 5), numbers({6, 2}, 5));
  expect_same_bits(own.get_weights(), loaded.get_weights());
  for (const char* ending : {".json", ".safetensors"}) std::filesystem::remove(path + ending);
}

TEST(OwnLayer, KeepsItsNameAndThatItIsFrozen) {
  Workspace ws, again;
  const Sequential own(ws, {own_dense(2, {.name = "fixed", .trainable = false, .input_shape = {3}})});
  const Model same = model_from_json(again, own.to_json(), kOwn);
  EXPECT_THAT(same.weight_names(), ElementsAre("fixed/kernel", "fixed/bias"));
  EXPECT_FALSE(same.layers()[0].trainable());
}

// As docs/keras.md has it.
struct Scale : keras::OwnLayer {
  void build(const std::vector<Shape>& in) override {
    factor_ = add_weight("factor", {in[0].dim(-1)}, {.initializer = "ones"});
  }
  Outputs compute(const Scope& s, const Outputs& in) override { return {mul(s, in[0], factor_)}; }
  Variable factor_;
};

TEST(OwnLayer, IsMadeAgainOfJson) {
  Workspace ws, other;
  const Sequential net(ws, {own_layer("Scale", std::make_shared<Scale>(), {.input_shape = {3}})});
  const std::string json = net.to_json();
  const CustomObjects own = {.layers = {{"Scale", [](const std::string& config) {
                                           return own_layer("Scale", std::make_shared<Scale>(),
                                                            layer_options_from(config));
                                         }}}};
  const Model again = model_from_json(other, json, own);
  EXPECT_EQ(again.count_params(), 3);
}

struct Broken : OwnLayer {
  void build(const std::vector<Shape>& in) override {
    add_weight("w", {3});
    add_weight("w", twice ? Shape({3}) : in[0]);
  }
  Outputs compute(const Scope&, const Outputs& in) override { return in; }
  std::string config() const override { return "[1]"; }
  bool twice = true;
};

TEST(OwnLayer, NamesWhatIsWrongWithIt) {
  Workspace ws;
  const auto broken = std::make_shared<Broken>();
  const Layer layer = own_layer("Broken", broken, {.name = "b"});
  const auto x = Input(ws, {3});
  EXPECT_THAT([&] { own_layer("Broken", broken); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("this object is the layer \"b\" already")));
  EXPECT_THAT([&] { layer(x); },
              ThrowsMessage<InvalidArgumentError>("Broken \"b\" has a weight \"w\" already"));
  const auto open = std::make_shared<Broken>();
  open->twice = false;
  EXPECT_THAT([&] { own_layer("Broken", open, {.name = "c"})(x); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("must be fully known")));
  EXPECT_THAT([&] { layer.get_config(); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("must be a JSON object")));
}

TEST(Lambda, RefusesAFunctionThatMakesAVariable) {
  Workspace ws;
  const Lambda layer(
      [](const Scope& s, const Outputs& in) {
        return mul(s, in[0], Variable(s.named("lost"), ones(s, DType::f32, {3})));
      },
      "scaled", {.name = "scaling"});
  EXPECT_THAT(
      [&] { layer(Input(ws, {3})); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("the Lambda layer \"scaling\" makes the variable")));
}

}  // namespace
}  // namespace kolo::keras
