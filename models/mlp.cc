#include <kolo/models/zoo.h>

#include <kolo/core/ops/math.h>
#include <kolo/models/layers.h>
#include <kolo/models/models.h>

namespace kolo::models {
namespace {

const RegisterModel mlp_model(
    {.name = "mlp", .sample = {784}, .classes = 10, .builder = [](Scope& s, Output x, const ModelSize& size) {
       return mlp(s, x, size.classes);
     }});

}  // namespace

Output mlp(Scope& s, Output x, std::int64_t classes) {
  Output h = flatten(s, x);
  h = relu(s, dense(s, h, 1024, "fc1"));
  h = relu(s, dense(s, h, 1024, "fc2"));
  return dense(s, h, classes, "fc3");
}

}  // namespace kolo::models
