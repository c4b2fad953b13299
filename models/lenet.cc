#include <kolo/models/zoo.h>

#include <kolo/core/ops/math.h>
#include <kolo/core/ops/pooling.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/models/data.h>
#include <kolo/models/layers.h>
#include <kolo/models/models.h>

namespace kolo::models {
namespace {

const RegisterModel lenet_model({.name = "lenet",
                                 .sample = {1, 28, 28},
                                 .classes = 10,
                                 .builder = [](Scope& s, Output x, const ModelSize& size) {
                                   return lenet(s, x, size.classes);
                                 }});

}  // namespace

Output lenet(Scope& s, Output x, std::int64_t classes) {
  detail::check_digits(x, "lenet");
  Output h = x.shape().rank() == 4 ? x : reshape(s.named("images"), x, {-1, 1, 28, 28});
  h = max_pool(s, relu(s, conv2d(s, h, {.filters = 32, .kernel = {5, 5}}, "conv1")));
  h = max_pool(s, relu(s, conv2d(s, h, {.filters = 64, .kernel = {5, 5}}, "conv2")));
  h = relu(s, dense(s, flatten(s, h), 1024, "fc1"));
  return dense(s, h, classes, "fc2");
}

}  // namespace kolo::models
