#include <kolo/models/keras/model.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <kolo/core/base/error.h>
#include <kolo/models/keras/normalization_layers.h>
#include <kolo/optimizer/rules.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class Saving : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() /
        ("keras_saving_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) +
         std::to_string(getpid()));
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

Sequential network(Workspace& ws) {
  return Sequential(ws,
                    {Dense(8, {.activation = "tanh", .input_shape = {3}}), BatchNormalization(), Dense(2)});
}

std::vector<Tensor> batch(int number) {
  Tensor x(DType::f32, {6, 3}), y(DType::f32, {6, 2});
  for (int i = 0; i < 18; ++i) x.data<float>()[i] = static_cast<float>((i * 7 + number * 5) % 11) / 11;
  for (int i = 0; i < 12; ++i) y.data<float>()[i] = static_cast<float>((i * 3 + number) % 5) / 5;
  return {x, y};
}

void train(const Model& model, int first, int last) {
  for (int i = first; i < last; ++i) model.train_on_batch(batch(i)[0], batch(i)[1]);
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].shape() != b[i].shape() || std::memcmp(a[i].raw(), b[i].raw(), a[i].bytes()) != 0) return false;
  return true;
}

TEST_F(Saving, GoesOnBitByBit) {  // row 45
  for (const Optimizer& optimizer :
       std::vector<Optimizer>{Adam(), Adam({.decay = .1, .amsgrad = true, .clipnorm = 1}), Nadam(),
                              SGD({.momentum = .9}), RMSprop(), Adagrad(), Adadelta(), Adamax()}) {
    Workspace first, second;
    const Sequential net = network(first);
    net.compile({.optimizer = optimizer, .loss = "mse", .metrics = {"mae"}});
    train(net, 0, 4);
    net.save(path("m"));
    const Model loaded = load_model(second, path("m"));
    EXPECT_EQ(loaded.metrics_names(), net.metrics_names());
    EXPECT_TRUE(same_bits(loaded.predict(batch(9)[0]), net.predict(batch(9)[0])));
    train(net, 4, 8);
    train(loaded, 4, 8);
    EXPECT_TRUE(same_bits(loaded.get_weights(), net.get_weights())) << optimizer.name();
    EXPECT_EQ(loaded.optimizer().iterations().get(), 8);
  }
}

TEST_F(Saving, LeavesAModelUncompiledThatWasSavedWithoutOptimizer) {
  Workspace ws, other, third;
  const Sequential net = network(ws);
  net.compile({.loss = "mse"});
  net.save(path("m.json"), {.include_optimizer = false});
  ::testing::internal::CaptureStderr();
  const Model loaded = load_model(other, path("m.safetensors"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("No training configuration found"));
  EXPECT_TRUE(same_bits(loaded.get_weights(), net.get_weights()));
  EXPECT_THAT([&] { loaded.metrics_names(); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("must compile a model")));
}

TEST_F(Saving, TakesAnOptimizerOfKolosFromTheCaller) {
  Workspace ws, other, third;
  const auto momentum = [] { return Optimizer(std::make_shared<MomentumOptimizer>(0.1, 0.9)); };
  const Sequential net = network(ws);
  net.compile({.optimizer = momentum(), .loss = "mse"});
  train(net, 0, 3);
  net.save(path("m"));
  const Model loaded = load_model(other, path("m"), {.optimizer = momentum()});
  train(net, 3, 5);
  train(loaded, 3, 5);
  EXPECT_TRUE(same_bits(loaded.get_weights(), net.get_weights()));
  EXPECT_THAT([&] { load_model(third, path("m")).metrics_names(); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("must compile a model")));
}

// Its slots are those of the first time.
TEST_F(Saving, KeepsTheSlotsOfAnOptimizerThatIsCompiledAgain) {
  Workspace ws, other;
  const auto momentum = [] { return Optimizer(std::make_shared<MomentumOptimizer>(0.1, 0.9)); };
  const Sequential net = network(ws);
  const Optimizer same = momentum();
  net.compile({.optimizer = same, .loss = "mse"});
  train(net, 0, 3);
  net.compile({.optimizer = same, .loss = "mse"});
  net.save(path("m"));
  const Model loaded = load_model(other, path("m"), {.optimizer = momentum()});
  train(net, 3, 5);
  train(loaded, 3, 5);
  EXPECT_TRUE(same_bits(loaded.get_weights(), net.get_weights()));
}

TEST_F(Saving, ChecksLayersAndShapes) {  // row 46
  Workspace ws;
  const Sequential three(ws, {Dense(4, {.input_shape = {4}}), Dense(4), LeakyReLU(), Dense(4)});
  const Sequential four(ws, {Dense(4, {.input_shape = {4}}), Dense(4), Dense(4), Dense(4)});
  three.save_weights(path("w"));
  EXPECT_THAT(
      [&] { four.load_weights(path("w")); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("containing 3 layers into a model with 4 layers")));
  const Sequential wide(ws, {Dense(48, {.input_shape = {20}})}),
      narrow(ws, {Dense(40, {.input_shape = {20}})});
  const Sequential bare(ws, {Dense(48, {.use_bias = false, .input_shape = {20}})});
  wide.save_weights(path("v"));
  EXPECT_THAT([&] { narrow.load_weights(path("v")); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("has shape (20, 40), but the saved weight has shape (20, 48)")));
  EXPECT_THAT([&] { bare.load_weights(path("v")); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("expects 1 weight(s), but the saved weights have 2 element(s).")));
}

TEST_F(Saving, LoadsLayersByName) {
  Workspace a, b;
  const Sequential from(a, {Dense(2, {.name = "x", .input_shape = {2}}), Dense(3, {.name = "y"})});
  const Sequential to(
      b, {Dense(2, {.name = "x", .input_shape = {2}}), Dense(4, {.name = "y"}), Dense(1, {.name = "z"})});
  from.save_weights(path("w"));
  EXPECT_THAT([&] { to.load_weights(path("w"), {.by_name = true}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("has shape (2, 4)")));
  to.load_weights(path("w"), {.by_name = true, .skip_mismatch = true});
  EXPECT_TRUE(same_bits(to.get_layer("x").get_weights(), from.get_layer("x").get_weights()));
}

TEST_F(Saving, FindsDamage) {
  Workspace ws;
  const Sequential net = network(ws);
  net.save(path("m"));
  const std::vector<Tensor> before = net.get_weights();
  {
    std::fstream file(path("m.safetensors"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put('\x55');
  }
  EXPECT_THROW(net.load_weights(path("m")), DataLossError);
  EXPECT_TRUE(same_bits(net.get_weights(), before));
  std::ofstream(path("m.json")) << "{";
  EXPECT_THROW(net.load_weights(path("m")), DataLossError);
  EXPECT_THROW(net.load_weights(path("none")), NotFoundError);
  EXPECT_THROW(net.save(path("m.h5")), UnimplementedError);
}

}  // namespace
}  // namespace kolo::keras
