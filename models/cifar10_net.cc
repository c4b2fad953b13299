#include <kolo/models/zoo.h>

#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/pooling.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/variables.h>
#include <kolo/models/layers.h>
#include <kolo/models/models.h>

namespace kolo::models {
namespace {

const RegisterModel cifar10_model({.name = "cifar10",
                                   .sample = {3, 32, 32},
                                   .classes = 10,
                                   .builder = [](Scope& s, Output x, const ModelSize& size) {
                                     return cifar10_net(s, x, size.classes);
                                   }});

constexpr LocalResponseNormLayer kNorm{.radius = 4, .bias = 1, .alpha = 0.001 / 9, .beta = 0.75};

struct First {
  double deviation;  // of the weights
  double bias;
};

Variable weights(const Scope& s, const Shape& shape, const First& first) {
  return Variable(s.named("w"),
                  truncated_normal(s.named("w/initial_value"), DType::f32, shape, 0, first.deviation));
}

Variable biases(const Scope& s, std::int64_t count, const First& first) {
  return Variable(s.named("b"), fill(s.named("b/initial_value"), DType::f32, {count}, first.bias));
}

Output convolution(const Scope& s, Output x, const std::string& name, const First& first) {
  constexpr std::int64_t kFilters = 64, kKernel = 5;
  const Scope layer = s.name_scope(name);
  const Output y = conv2d(layer, x, weights(layer, {kFilters, x.shape().dim(1), kKernel, kKernel}, first));
  return relu(layer, bias_add(layer, y, biases(layer, kFilters, first)));
}

// decay: of the weights; 0: none.
Output affine(const Scope& s, Output x, std::int64_t units, const std::string& name, const First& first,
              double decay = 0) {
  const Scope layer = s.name_scope(name);
  const Variable w = weights(layer, {x.shape().dim(1), units}, first);
  if (decay > 0)
    add_penalty(layer, mul(layer, l2_loss(layer, w), constant(layer, static_cast<float>(decay))));
  return bias_add(layer, matmul(layer, x, w), biases(layer, units, first));
}

Output maximum_of(const Scope& s, Output x, const std::string& name) {
  return max_pool(s.named(name), x, {.window = {3, 3}, .strides = {2, 2}, .padding = Padding::same});
}

}  // namespace

Output cifar10_net(Scope& s, Output x, std::int64_t classes) {
  if (!x.shape().has_rank() || x.shape().rank() != 4 || x.shape().dim(1) < 1 || x.shape().dim(2) < 1 ||
      x.shape().dim(3) < 1)
    throw InvalidArgumentError("cifar10: its input {} is {}; it must be images [N,C,H,W], all but N known",
                               x.name(), x.shape());
  constexpr double kDecay = 0.004;
  Output h = maximum_of(s, convolution(s, x, "conv1", {0.05, 0}), "pool1");
  h = local_response_norm(s.named("norm1"), h, kNorm);
  h = local_response_norm(s.named("norm2"), convolution(s, h, "conv2", {0.05, 0.1}), kNorm);
  h = flatten(s, maximum_of(s, h, "pool2"));
  h = relu(s, affine(s, h, 384, "local3", {0.04, 0.1}, kDecay));
  h = relu(s, affine(s, h, 192, "local4", {0.04, 0.1}, kDecay));
  return affine(s, h, classes, "softmax_linear", {1 / 192.0, 0});
}

}  // namespace kolo::models
