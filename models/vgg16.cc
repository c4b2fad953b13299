#include <kolo/models/zoo.h>

#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/pooling.h>
#include <kolo/models/layers.h>
#include <kolo/models/models.h>

namespace kolo::models {
namespace {

const RegisterModel vgg16_model({.name = "vgg16",
                                 .sample = {3, 224, 224},
                                 .classes = 1000,
                                 .builder = [](Scope& s, Output x, const ModelSize& size) {
                                   return vgg16(s, x, size.classes);
                                 }});

struct Group {
  std::int64_t filters;
  int convolutions;
};
constexpr std::int64_t kSmallest = 32;  // five times halved: one pixel

}  // namespace

Output vgg16(Scope& s, Output x, std::int64_t classes) {
  if (x.shape().rank() == 4 && ((x.shape().dim(2) >= 0 && x.shape().dim(2) < kSmallest) ||
                                (x.shape().dim(3) >= 0 && x.shape().dim(3) < kSmallest)))
    throw InvalidArgumentError("vgg16 halves its images five times; {} is smaller than {}x{}", x.shape(),
                               kSmallest, kSmallest);
  Output h = x;
  int number = 1;
  for (const Group& group : {Group{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}}) {
    for (int i = 1; i <= group.convolutions; ++i) {
      const std::string name = "conv" + std::to_string(number) + "_" + std::to_string(i);
      h = relu(s, conv2d(s, h, {.filters = group.filters}, name));
    }
    h = max_pool(s.named("pool" + std::to_string(number++)), h, {.padding = Padding::valid});
  }
  h = flatten(s, h);
  for (const char* const name : {"fc1", "fc2"}) h = dropout(s, relu(s, dense(s, h, 4096, name)), 0.5);
  return dense(s, h, classes, "fc3");
}

}  // namespace kolo::models
