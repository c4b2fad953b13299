#include <kolo/models/layers.h>

#include <cstdlib>

#include <kolo/collectives/graph/collective_ops.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/normalization.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/variables.h>

namespace kolo::models {
namespace {

// The size of dimension `axis` of a layer's input, which has `rank` dimensions.
std::int64_t input_size(const Output& x, int rank, int axis, const std::string& layer) {
  if (!x.shape().has_rank() || x.shape().rank() != rank || x.shape().dim(axis) < 0)
    throw InvalidArgumentError(
        "layer \"{}\": its input {} is {}; it must have {} dimensions, and dimension {} must be known", layer,
        x.name(), x.shape(), rank, axis);
  return x.shape().dim(axis);
}

Variable weights(const Scope& s, DType dtype, const Shape& shape) {
  return Variable(s.named("w"), glorot_uniform(s.named("w/initial_value"), dtype, shape));
}

// All elements start at `start`.
Variable constant_variable(const Scope& s, const std::string& name, DType dtype, const Shape& shape,
                           double start, const VariableOptions& options = {}) {
  return Variable(s.named(name), fill(s.named(name + "/initial_value"), dtype, shape, start), options);
}

Variable biases(const Scope& s, DType dtype, std::int64_t count) {
  return constant_variable(s, "b", dtype, {count}, 0);
}

}  // namespace

Output dense(const Scope& s, Output x, std::int64_t units, const std::string& name, bool bias) {
  const std::int64_t inputs = input_size(x, 2, 1, name);
  const Scope layer = s.name_scope(name);
  const Variable w = weights(layer, x.dtype(), {inputs, units});
  const Output y = matmul(layer, x, w);
  return bias ? bias_add(layer, y, biases(layer, x.dtype(), units)) : y;
}

Output conv2d(const Scope& s, Output x, const Conv2dLayer& layer, const std::string& name) {
  const std::int64_t channels = input_size(x, 4, 1, name);
  const Scope scope = s.name_scope(name);
  const Variable w = weights(scope, x.dtype(), {layer.filters, channels, layer.kernel[0], layer.kernel[1]});
  const Output y = kolo::conv2d(scope, x, w, {.strides = layer.strides, .padding = layer.padding});
  return layer.bias ? bias_add(scope, y, biases(scope, x.dtype(), layer.filters)) : y;
}

Output conv2d_norm(const Scope& s, Output x, Conv2dLayer layer, const std::string& name,
                   const BatchNormLayer& norm) {
  layer.bias = false;
  return batch_norm(s, conv2d(s, x, layer, name), name + "_norm", norm);
}

Output depthwise_conv2d(const Scope& s, Output x, const DepthwiseConv2dLayer& layer,
                        const std::string& name) {
  const std::int64_t channels = input_size(x, 4, 1, name);
  const Scope scope = s.name_scope(name);
  const Variable w =
      weights(scope, x.dtype(), {channels, layer.multiplier, layer.kernel[0], layer.kernel[1]});
  const Output y = kolo::depthwise_conv2d(scope, x, w, {.strides = layer.strides, .padding = layer.padding});
  return layer.bias ? bias_add(scope, y, biases(scope, x.dtype(), channels * layer.multiplier)) : y;
}

Output conv2d_transpose(const Scope& s, Output x, const Conv2dLayer& layer, const std::string& name) {
  const std::int64_t channels = input_size(x, 4, 1, name);
  const Scope scope = s.name_scope(name);
  const Variable w = weights(scope, x.dtype(), {channels, layer.filters, layer.kernel[0], layer.kernel[1]});
  const Output y = kolo::conv2d_transpose(scope, x, w, {.strides = layer.strides, .padding = layer.padding});
  return layer.bias ? bias_add(scope, y, biases(scope, x.dtype(), layer.filters)) : y;
}

namespace {

using Normalize = BatchNormResult (*)(const Scope&, Output x, Output scale, Output offset, Output moving_mean,
                                      Output moving_variance, BatchNormOptions options);

Output normalized(const Scope& s, Output x, const std::string& name, const BatchNormLayer& layer,
                  Normalize normalize) {
  if (!x.shape().has_rank() || x.shape().rank() < 2 || x.shape().dim(1) < 0)
    throw InvalidArgumentError(
        "layer \"{}\": its input {} is {}; it must be [N,C] or [N,C,…], and C must be known", name, x.name(),
        x.shape());
  const Scope scope = s.name_scope(name);
  const Shape channels{x.shape().dim(1)};
  const Variable gamma = constant_variable(scope, "gamma", x.dtype(), channels, 1);
  const Variable beta = constant_variable(scope, "beta", x.dtype(), channels, 0);
  const VariableOptions fixed{.trainable = false};
  const Variable mean = constant_variable(scope, "moving_mean", x.dtype(), channels, 0, fixed);
  const Variable variance = constant_variable(scope, "moving_variance", x.dtype(), channels, 1, fixed);
  const BatchNormResult result = normalize(scope, x, gamma, beta, mean, variance,
                                           {.epsilon = layer.epsilon, .momentum = layer.momentum});
  add_update_op(scope, assign(scope, mean, result.moving_mean));
  add_update_op(scope, assign(scope, variance, result.moving_variance));
  return result.y;
}

}  // namespace

Output batch_norm(const Scope& s, Output x, const std::string& name, const BatchNormLayer& layer) {
  return normalized(s, x, name, layer, kolo::batch_norm);
}

Output sync_batch_norm(const Scope& s, Output x, const std::string& name, const BatchNormLayer& layer) {
  return normalized(s, x, name, layer, kolo::sync_batch_norm);
}

Output layer_norm(const Scope& s, Output x, const std::string& name, double epsilon) {
  if (!x.shape().has_rank() || x.shape().rank() < 1 || x.shape().dim(-1) < 0)
    throw InvalidArgumentError("layer \"{}\": its input {} is {}; its last dimension must be known", name,
                               x.name(), x.shape());
  const Scope scope = s.name_scope(name);
  const Shape row{x.shape().dim(-1)};
  const Variable gamma = constant_variable(scope, "gamma", x.dtype(), row, 1);
  const Variable beta = constant_variable(scope, "beta", x.dtype(), row, 0);
  return kolo::layer_norm(scope, x, gamma, beta, epsilon);
}

Output local_response_norm(const Scope& s, Output x, const LocalResponseNormLayer& layer) {
  const std::string name = s.wished_name("local_response_norm");
  const std::int64_t channels = input_size(x, 4, 1, name);
  if (layer.radius < 0)
    throw InvalidArgumentError("layer \"{}\": radius {}; it must be at least 0", name, layer.radius);
  const Scope scope = s.name_scope(name);
  // The sum over channels is a 1×1 convolution with ones near the diagonal.
  Tensor near = Tensor::zeros(DType::f32, {channels, channels, 1, 1});
  for (std::int64_t to = 0; to < channels; ++to)
    for (std::int64_t from = 0; from < channels; ++from)
      if (std::abs(to - from) <= layer.radius) near.data<float>()[to * channels + from] = 1;
  const auto number = [&](double value) {
    return cast(scope, constant(scope, static_cast<float>(value)), x.dtype());
  };
  const Output sum = kolo::conv2d(scope, square(scope, x), cast(scope, constant(scope, near), x.dtype()));
  const Output below = add(scope, mul(scope, sum, number(layer.alpha)), number(layer.bias));
  return mul(scope, x, pow(scope, below, number(-layer.beta)));
}

namespace {
constexpr char kPenalties[] = "penalties";
}  // namespace

void add_penalty(const Scope& s, Output penalty) {
  if (!penalty.shape().has_rank() || penalty.shape().rank() != 0)
    throw InvalidArgumentError("a penalty is a scalar; {} is {}", penalty.name(), penalty.shape());
  s.graph().add_to_collection(kPenalties, *penalty.node);
}

Output with_penalties(const Scope& s, Output loss) {
  Outputs terms = {loss};
  for (const Node* penalty : s.graph().collection(kPenalties)) terms.push_back({penalty, 0});
  return terms.size() == 1 ? loss : add_n(s.named("loss"), terms);
}

Output flatten(const Scope& s, Output x) {
  if (!x.shape().has_rank() || x.shape().rank() < 1)
    throw InvalidArgumentError("flatten: {} is {}; it must have a first dimension", x.name(), x.shape());
  std::int64_t elements = 1;
  for (int axis = 1; axis < x.shape().rank(); ++axis) {
    if (x.shape().dim(axis) < 0)
      throw InvalidArgumentError("flatten: {} is {}; all but the first dimension must be known", x.name(),
                                 x.shape());
    elements *= x.shape().dim(axis);
  }
  return x.shape().rank() == 2 ? x : reshape(s, x, {-1, elements});
}

}  // namespace kolo::models
