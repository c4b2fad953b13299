#include <kolo/models/models.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/models/zoo.h>
#include <kolo/optimizer/rules.h>

namespace kolo::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::ThrowsMessage;

std::map<std::string, Shape> variables_of(const std::string& model) {
  Graph graph;
  Scope s(graph);
  const Model& found = find_model(model);
  std::vector<std::int64_t> batch = {-1};
  batch.insert(batch.end(), found.sample.dims().begin(), found.sample.dims().end());
  const Output logits = found.build(s, placeholder(s, DType::f32, Shape(batch)));
  EXPECT_EQ(logits.shape(), Shape({-1, found.classes}));
  std::map<std::string, Shape> shapes;
  for (const Variable& variable : trainable_variables(graph)) shapes[variable.name()] = variable.shape();
  return shapes;
}

std::int64_t parameters(const std::map<std::string, Shape>& variables) {
  std::int64_t count = 0;
  for (const auto& [name, shape] : variables) count += shape.elements();
  return count;
}

TEST(Models, AreFoundByName) {
  EXPECT_THAT(registered_models(),
              IsSupersetOf({"cifar10", "gpt", "lenet", "lstm", "mlp", "resnet20", "resnet50", "vgg16"}));
  EXPECT_THAT([] { find_model("lenett"); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("\"lenett\""), HasSubstr("did you mean \"lenet\"?"))));
}

TEST(Mlp, HasTheVariablesOfItsLayers) {
  const auto variables = variables_of("mlp");
  EXPECT_EQ(variables, (std::map<std::string, Shape>{{"fc1/w", {784, 1024}},
                                                     {"fc1/b", {1024}},
                                                     {"fc2/w", {1024, 1024}},
                                                     {"fc2/b", {1024}},
                                                     {"fc3/w", {1024, 10}},
                                                     {"fc3/b", {10}}}));
  EXPECT_EQ(parameters(variables), 1863690);
}

TEST(Lenet, HasTheVariablesOfItsLayers) {
  const auto variables = variables_of("lenet");
  EXPECT_EQ(variables, (std::map<std::string, Shape>{{"conv1/w", {32, 1, 5, 5}},
                                                     {"conv1/b", {32}},
                                                     {"conv2/w", {64, 32, 5, 5}},
                                                     {"conv2/b", {64}},
                                                     {"fc1/w", {3136, 1024}},
                                                     {"fc1/b", {1024}},
                                                     {"fc2/w", {1024, 10}},
                                                     {"fc2/b", {10}}}));
  EXPECT_EQ(parameters(variables), 3274634);
}

class DigitModel : public ::testing::TestWithParam<std::string> {};

TEST_P(DigitModel, TakesFlatDigitsAndImagesAlike) {
  Graph graph;
  Scope s(graph);
  for (const Shape& shape : {Shape({5, 784}), Shape({5, 1, 28, 28})})
    EXPECT_EQ(find_model(GetParam()).build(s, placeholder(s, DType::f32, shape)).shape(), Shape({5, 10}));
}

TEST(Lenet, RefusesOtherInputs) {
  Graph graph;
  Scope s(graph);
  const Model& model = find_model("lenet");
  EXPECT_THAT(
      [&] {
        model.build(s, placeholder(s, DType::f32, {-1, 100}));
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("lenet"), HasSubstr("[?,100]"))));
  EXPECT_THAT(
      [&] {
        model.build(s, placeholder(s, DType::u8, {-1, 784}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("u8")));
}

TEST(Mlp, TakesAnyNumberOfFeatures) {
  Graph graph;
  Scope s(graph);
  EXPECT_EQ(mlp(s, placeholder(s, DType::f32, {-1, 5, 4}), 3).shape(), Shape({-1, 3}));
}

class ImageModel : public ::testing::TestWithParam<std::string> {};

TEST_P(ImageModel, HasAsManyClassesAsAreAskedFor) {
  Graph graph;
  Scope s(graph);
  const Model& model = find_model(GetParam());
  std::vector<std::int64_t> batch = {-1};
  batch.insert(batch.end(), model.sample.dims().begin(), model.sample.dims().end());
  const Output x = placeholder(s, DType::f32, Shape(batch));
  EXPECT_EQ(model.build(s, x, {.classes = 7}).shape(), Shape({-1, 7}));
}

INSTANTIATE_TEST_SUITE_P(Models, ImageModel,
                         ::testing::Values("cifar10", "lenet", "mlp", "resnet20", "resnet50", "vgg16"),
                         [](const auto& instance) { return instance.param; });

TEST(Models, RefuseSizesThatCannotBeChosen) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {-1, 784});
  EXPECT_THAT([&] { find_model("mlp").build(s, x, {.width = 64}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("mlp: its width cannot be chosen, and 64")));
  EXPECT_THAT([&] { find_model("mlp").build(s, x, {.classes = -1}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("-1 classes")));
}

TEST_P(DigitModel, LearnsFourDigitsByHeart) {
  Graph graph;
  graph.set_seed(1);
  Scope s(graph);
  // Each sample has its own quarter of the picture black.
  Tensor pictures = Tensor::zeros(DType::f32, {4, 784});
  for (int i = 0; i < 4; ++i)
    for (int pixel = 0; pixel < 196; ++pixel) pictures.data<float>()[i * 784 + i * 196 + pixel] = 1;
  const Output x = constant(s, pictures), y = constant(s, Tensor::of<std::int32_t>({4}, {3, 1, 4, 9}));
  const Output loss =
      reduce_mean(s, sparse_softmax_cross_entropy_with_logits(s, find_model(GetParam()).build(s, x), y));
  GradientDescentOptimizer optimizer(0.05);
  const Operation step = optimizer.minimize(s, loss);
  Session session(graph);
  session.run(global_variables_initializer(s));
  const float before = session.run(loss).value<float>();
  for (int i = 0; i < 30; ++i) session.run(step);
  const float after = session.run(loss).value<float>();
  EXPECT_NEAR(before, std::log(10.0f), 1) << "ten classes, nothing learnt yet";
  EXPECT_LT(after, 0.1f);
}

INSTANTIATE_TEST_SUITE_P(Models, DigitModel, ::testing::Values("lenet", "mlp"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace kolo::models
