#include <kolo/models/zoo.h>

#include <string>

#include <kolo/core/ops/math.h>
#include <kolo/core/ops/pooling.h>
#include <kolo/models/layers.h>
#include <kolo/models/models.h>

namespace kolo::models {
namespace {

const RegisterModel resnet20_model({.name = "resnet20",
                                    .sample = {3, 32, 32},
                                    .classes = 10,
                                    .builder = [](Scope& s, Output x, const ModelSize& size) {
                                      return resnet20(s, x, size.classes);
                                    }});

Output convolution(const Scope& s, Output x, const Conv2dLayer& layer, const std::string& name) {
  return conv2d_norm(s, x, layer, name, {.momentum = 0.9, .epsilon = 1e-5});
}

Output residual_block(const Scope& s, Output x, std::int64_t filters, std::int64_t stride) {
  Output y = relu(s, convolution(s, x, {.filters = filters, .strides = {stride, stride}}, "conv1"));
  y = convolution(s, y, {.filters = filters}, "conv2");
  const bool same_shape = stride == 1 && x.shape().dim(1) == filters;
  const Conv2dLayer projection{.filters = filters, .kernel = {1, 1}, .strides = {stride, stride}};
  return relu(s, add(s, y, same_shape ? x : convolution(s, x, projection, "shortcut")));
}

}  // namespace

Output resnet20(Scope& s, Output x, std::int64_t classes) {
  Output h = relu(s, convolution(s, x, {.filters = 16}, "conv1"));
  std::int64_t filters = 16;
  for (int stage = 1; stage <= 3; ++stage, filters *= 2)
    for (int i = 1; i <= 3; ++i) {
      const Scope scope = s.name_scope("stage" + std::to_string(stage) + "/block" + std::to_string(i));
      h = residual_block(scope, h, filters, stage > 1 && i == 1 ? 2 : 1);
    }
  return dense(s, global_avg_pool(s.named("mean"), h), classes, "fc");
}

}  // namespace kolo::models
