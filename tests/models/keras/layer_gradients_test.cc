// The gradient of each layer, of its inputs and of its weights, against central differences of its values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>
#include <kolo/models/keras/core_layers.h>
#include <kolo/models/keras/image_layers.h>
#include <kolo/models/keras/layer_internal.h>
#include <kolo/models/keras/merge_layers.h>
#include <kolo/models/keras/normalization_layers.h>

namespace kolo::keras {
namespace {

constexpr std::int64_t kBatch = 2;
constexpr float kStep = 0.01F;

struct LayerCase {
  std::string name;
  std::function<Layer()> make;
  std::vector<Shape> inputs;  // without the batch
  WorkspaceOptions workspace = {};
};
void PrintTo(const LayerCase& layer, std::ostream* stream) { *stream << layer.name; }

// Distinct, so far from each other and from 0 that a step of the difference changes no order and no sign.
Tensor spread_numbers(const Shape& shape) {
  Tensor tensor(DType::f32, shape);
  const std::int64_t n = tensor.elements();
  for (std::int64_t i = 0; i < n; ++i)
    tensor.data<float>()[i] =
        (static_cast<float>(i * 29 % n) + 0.5F - static_cast<float>(n) / 2) * 2.4F / static_cast<float>(n);
  return tensor;
}

// A layer in a graph, and Σ wᵢ·yᵢ of its results as a function of its inputs and weights.
class Differentiated {
 public:
  explicit Differentiated(const LayerCase& layer) : workspace_(layer.workspace), layer_(layer.make()) {
    std::vector<KerasTensor> inputs;
    for (const Shape& shape : layer.inputs)
      inputs.push_back(Input(workspace_, shape, {.dtype = layer_.impl().input_dtype()}));
    y_ = inputs.size() == 1 ? layer_(inputs[0]).output() : layer_(inputs).output();
    for (const KerasTensor& input : inputs) add_input(input);
    for (const detail::Weight* weight : layer_.impl().weights())
      if (weight->trainable) variables_.push_back(weight->variable), xs_.push_back(weight->variable);
    Scope s = workspace_.scope();
    factors_ = placeholder(s, DType::f32, y_.shape());
    gradients_ = gradients(s, {y_}, xs_, {factors_});
    workspace_.initialize_variables();
    positions_ = workspace_.session().random_positions();
    w_ = spread_numbers(run(y_).shape());
    positions_ = starts();
    feeds_.emplace_back(factors_, w_);
  }

  std::size_t count() const { return xs_.size(); }
  std::string name(std::size_t x) const { return xs_[x].name(); }
  Tensor gradient(std::size_t x) { return gradients_[x] ? run(gradients_[x]) : Tensor(); }
  Tensor value(std::size_t x) {
    if (x < differentiable_inputs_) return feeds_[x].second;
    return workspace_.session().get_variables({variables_[x - differentiable_inputs_].name()})[0];
  }
  double sum_at(std::size_t x, const Tensor& value) {
    const Tensor before = this->value(x);
    set(x, value);
    const Tensor y = run(y_);
    set(x, before);
    double sum = 0;
    for (std::int64_t i = 0; i < y.elements(); ++i)
      sum += static_cast<double>(w_.data<float>()[i]) * static_cast<double>(y.data<float>()[i]);
    return sum;
  }

 private:
  // Whole numbers are rows of a table, and have no gradient.
  void add_input(const KerasTensor& input) {
    const Shape shape = input.shape().with_dim(0, kBatch);
    Tensor fed = spread_numbers(shape);
    if (input.dtype() == DType::f32) ++differentiable_inputs_, xs_.push_back(input.output());
    else {
      fed = Tensor(DType::i32, shape);
      for (std::int64_t i = 0; i < fed.elements(); ++i)
        fed.data<std::int32_t>()[i] = static_cast<std::int32_t>(i * 2 % 3);
    }
    feeds_.emplace_back(input.output(), fed);
  }

  void set(std::size_t x, const Tensor& value) {
    if (x < differentiable_inputs_) feeds_[x].second = value;
    else workspace_.session().set_variables({{variables_[x - differentiable_inputs_].name(), value}});
  }

  // All runs draw the same numbers.
  std::map<std::string, std::uint64_t> starts() {
    auto positions = workspace_.session().random_positions();
    for (auto& [name, position] : positions) position = 0;
    return positions;
  }
  Tensor run(const Output& output) {
    workspace_.session().set_random_positions(positions_);
    return workspace_.session().run(output, feeds_);
  }

  Workspace workspace_;
  Layer layer_;
  Output y_, factors_;
  Outputs xs_, gradients_;
  std::size_t differentiable_inputs_ = 0;
  std::vector<Variable> variables_;
  Feeds feeds_;
  Tensor w_;
  std::map<std::string, std::uint64_t> positions_;
};

class LayerGradients : public ::testing::TestWithParam<LayerCase> {};

// f32 computes values of about 1 to 1e-7: the quotient is exact to 1e-5 beside what the third derivative
// adds, 1e-4 / 6 of it.
TEST_P(LayerGradients, AreTheDifferencesOfItsValues) {
  Differentiated layer(GetParam());
  ASSERT_GT(layer.count(), 0U);
  for (std::size_t x = 0; x < layer.count(); ++x) {
    const Tensor value = layer.value(x), gradient = layer.gradient(x);
    ASSERT_EQ(gradient.shape(), value.shape()) << layer.name(x);
    for (std::int64_t i = 0; i < value.elements(); ++i) {
      Tensor above = value.clone(), below = value.clone();
      above.data<float>()[i] += kStep;
      below.data<float>()[i] -= kStep;
      const double apart =
          static_cast<double>(above.data<float>()[i]) - static_cast<double>(below.data<float>()[i]);
      const double expected = (layer.sum_at(x, above) - layer.sum_at(x, below)) / apart;
      EXPECT_NEAR(gradient.data<float>()[i], expected, 2e-3 * std::max(1.0, std::abs(expected)))
          << "element " << i << " of " << layer.name(x);
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<LayerCase>& info) { return info.param.name; }

const Shape kImage{2, 4, 5};

INSTANTIATE_TEST_SUITE_P(
    Core, LayerGradients,
    ::testing::Values(
        LayerCase{
            "Dense", [] { return Dense(3, {.activation = "tanh", .bias_initializer = "ones"}); }, {{4}}},
        LayerCase{"DenseOnTheLastOfSeveralAxes", [] { return Dense(2); }, {{3, 4}}},
        LayerCase{"Flatten", [] { return Flatten(); }, {kImage}},
        LayerCase{"Reshape",
                  [] {
                    return Reshape({5, -1});
                  },
                  {kImage}},
        LayerCase{"Permute",
                  [] {
                    return Permute({3, 1, 2});
                  },
                  {kImage}},
        LayerCase{"RepeatVector", [] { return RepeatVector(3); }, {{4}}},
        LayerCase{"Dropout", [] { return Dropout(.4); }, {{9}}},
        LayerCase{"GaussianNoise", [] { return GaussianNoise(.3); }, {{9}}},
        LayerCase{"GaussianDropout", [] { return GaussianDropout(.3); }, {{9}}},
        LayerCase{"Embedding", [] { return Embedding(4, 3); }, {{5}}},
        LayerCase{"Lambda",
                  [] { return Lambda([](const Scope& s, const Outputs& in) { return identity(s, in[0]); }); },
                  {{4}}}),
    name_of);

std::vector<LayerCase> activations() {
  std::vector<LayerCase> all;
  for (const char* name : {"linear", "relu", "sigmoid", "tanh", "softmax", "elu", "selu", "softplus",
                           "softsign", "exponential", "hard_sigmoid"})
    all.push_back({std::string("Activation_") + name, [name] { return Activation(name); }, {{7}}});
  all.push_back({"Softmax", [] { return Softmax(1); }, {{3, 4}}});
  all.push_back(
      {"ReLU", [] { return ReLU({.max_value = .9, .negative_slope = .2, .threshold = -.5}); }, {{7}}});
  all.push_back({"LeakyReLU", [] { return LeakyReLU(); }, {{7}}});
  all.push_back({"ELU", [] { return ELU(.6); }, {{7}}});
  all.push_back({"PReLU", [] { return PReLU(); }, {{7}}});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Activations, LayerGradients, ::testing::ValuesIn(activations()), name_of);

INSTANTIATE_TEST_SUITE_P(
    Images, LayerGradients,
    ::testing::Values(
        LayerCase{"Conv2D",
                  [] {
                    return Conv2D(3, {2, 3}, {.activation = "sigmoid"});
                  },
                  {kImage}},
        LayerCase{"Conv2DSameWithStrides",
                  [] { return Conv2D(2, 3, {.strides = 2, .padding = "same"}); },
                  {kImage}},
        LayerCase{
            "Conv2DChannelsLast", [] { return Conv2D(2, 3); }, {{4, 5, 2}}, {.data_format = "channels_last"}},
        LayerCase{"DepthwiseConv2D", [] { return DepthwiseConv2D(3, {.depth_multiplier = 2}); }, {kImage}},
        LayerCase{"Conv2DTranspose", [] { return Conv2DTranspose(2, 3, {.strides = 2}); }, {{2, 2, 3}}},
        LayerCase{"MaxPooling2D", [] { return MaxPooling2D(2, {.padding = "same"}); }, {kImage}},
        LayerCase{"AveragePooling2D",
                  [] {
                    return AveragePooling2D({3, 2}, {.strides = 1, .padding = "same"});
                  },
                  {kImage}},
        LayerCase{"GlobalMaxPooling2D", [] { return GlobalMaxPooling2D(); }, {kImage}},
        LayerCase{"GlobalAveragePooling2D", [] { return GlobalAveragePooling2D(); }, {kImage}},
        LayerCase{"UpSampling2D",
                  [] {
                    return UpSampling2D({2, 3});
                  },
                  {{2, 2, 3}}},
        LayerCase{"UpSampling2DBilinear",
                  [] { return UpSampling2D(2, {.interpolation = "bilinear"}); },
                  {{2, 2, 3}}},
        LayerCase{"ZeroPadding2D",
                  [] {
                    return ZeroPadding2D({1, 0, 2, 1});
                  },
                  {kImage}},
        LayerCase{"Cropping2D",
                  [] {
                    return Cropping2D({1, 1, 0, 2});
                  },
                  {kImage}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Normalization, LayerGradients,
    ::testing::Values(LayerCase{"BatchNormalization", [] { return BatchNormalization(); }, {{2, 3, 2}}},
                      LayerCase{"BatchNormalizationFrozen",
                                [] { return BatchNormalization({.center = false, .trainable = false}); },
                                {{3}}},
                      LayerCase{"LayerNormalization", [] { return LayerNormalization(); }, {{2, 5}}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Merging, LayerGradients,
    ::testing::Values(LayerCase{"Add", [] { return Add(); }, {{3}, {3}, {3}}},
                      LayerCase{"Subtract", [] { return Subtract(); }, {{3}, {3}}},
                      LayerCase{"Multiply", [] { return Multiply(); }, {{4}, {4}}},
                      LayerCase{"Average", [] { return Average(); }, {{4}, {4}}},
                      LayerCase{"Maximum", [] { return Maximum(); }, {{4}, {2, 4}}},
                      LayerCase{"Minimum", [] { return Minimum(); }, {{4}, {2, 4}}},
                      LayerCase{"Concatenate", [] { return Concatenate(1); }, {{2, 3}, {4, 3}}},
                      LayerCase{"Dot",
                                [] {
                                  return Dot(Pair(1, 2));
                                },
                                {{3, 2}, {2, 3}}},
                      LayerCase{"DotNormalized", [] { return Dot(1, true); }, {{4}, {4}}}),
    name_of);

}  // namespace
}  // namespace kolo::keras
