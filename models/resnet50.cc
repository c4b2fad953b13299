#include <kolo/models/zoo.h>

#include <string>

#include <kolo/core/ops/math.h>
#include <kolo/core/ops/pooling.h>
#include <kolo/core/ops/slicing.h>
#include <kolo/models/layers.h>
#include <kolo/models/models.h>

namespace kolo::models {
namespace {

const RegisterModel resnet50_model({.name = "resnet50",
                                    .sample = {3, 224, 224},
                                    .classes = 1000,
                                    .builder = [](Scope& s, Output x, const ModelSize& size) {
                                      return resnet50(s, x, size.classes);
                                    }});

constexpr std::int64_t kExpansion = 4;  // channels of a block for each of its 3×3 convolution's

// PyTorch has as many zeros before an image as behind it. With stride 1 Padding::same has, too.
Output with_zeros(const Scope& s, Output x, std::int64_t count) {
  return pad(s, x, {{0, 0}, {0, 0}, {count, count}, {count, count}});
}

Output convolution(const Scope& s, Output x, std::int64_t filters, std::int64_t kernel, std::int64_t stride,
                   const std::string& name) {
  Conv2dLayer layer{.filters = filters, .kernel = {kernel, kernel}, .strides = {stride, stride}};
  if (stride > 1) layer.padding = Padding::valid;
  if (stride > 1 && kernel > 1) x = with_zeros(s, x, kernel / 2);
  return conv2d_norm(s, x, layer, name, {.momentum = 0.9, .epsilon = 1e-5});
}

Output bottleneck(const Scope& s, Output x, std::int64_t width, std::int64_t stride) {
  Output y = relu(s, convolution(s, x, width, 1, 1, "conv1"));
  y = relu(s, convolution(s, y, width, 3, stride, "conv2"));
  y = convolution(s, y, width * kExpansion, 1, 1, "conv3");
  const bool same_shape = stride == 1 && x.shape().dim(1) == width * kExpansion;
  return relu(s, add(s, y, same_shape ? x : convolution(s, x, width * kExpansion, 1, stride, "shortcut")));
}

}  // namespace

Output resnet50(Scope& s, Output x, std::int64_t classes) {
  Output h = relu(s, convolution(s, x, 64, 7, 2, "conv1"));
  // Behind a ReLU zeros at the edges are no maximum that counts.
  h = max_pool(s.named("pool1"), with_zeros(s, h, 1),
               {.window = {3, 3}, .strides = {2, 2}, .padding = Padding::valid});
  std::int64_t width = 64;
  int stage = 1;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int i = 1; i <= blocks; ++i) {
      const Scope scope = s.name_scope("stage" + std::to_string(stage) + "/block" + std::to_string(i));
      h = bottleneck(scope, h, width, stage > 1 && i == 1 ? 2 : 1);
    }
    width *= 2, ++stage;
  }
  return dense(s, global_avg_pool(s.named("mean"), h), classes, "fc");
}

}  // namespace kolo::models
