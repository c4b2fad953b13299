// Two inputs, two outputs and a layer that both inputs share: how far apart are two digits, and which is the
// first?
//
// keras_functional [EPOCHS [DATA]]: DATA is the folder of MNIST's four files, or "generated".
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

#include <kolo/keras.h>
#include <kolo/kolo.h>

using namespace kolo;
using namespace kolo::keras;

namespace {

// Digits with the digits half the set further on: their classes, and how far these are apart.
Samples pairs(const Samples& digits) {
  const Tensor &images = digits.x.tensor(), &classes = digits.y.tensor();
  const std::int64_t count = images.shape().dim(0) / 2;
  Tensor distance(DType::f32, {count});
  for (std::int64_t i = 0; i < count; ++i)
    distance.data<float>()[i] = static_cast<float>(
        std::abs(classes.data<std::int32_t>()[i] - classes.data<std::int32_t>()[count + i]));
  return {.x = {images.rows(0, count), images.rows(count, 2 * count)},
          .y = std::map<std::string, Tensor>{{"digit", classes.rows(0, count)}, {"distance", distance}}};
}

}  // namespace

int main(int argc, char** argv) {
  init(&argc, &argv);
  const std::int64_t epochs = argc > 1 ? std::stoll(argv[1]) : 5;
  const auto data = argc > 2 ? std::optional<std::string>(argv[2]) : std::nullopt;
  keras::Workspace ws;
  const Samples train = pairs(load_mnist(ws, models::Split::train, data)),
                test = pairs(load_mnist(ws, models::Split::test, data));

  const auto first = Input(ws, {1, 28, 28}, {.name = "first"});
  const auto second = Input(ws, {1, 28, 28}, {.name = "second"});
  const keras::Sequential features(
      ws, {Flatten({.input_shape = {1, 28, 28}}), Dense(128, {.activation = "relu"})}, {.name = "features"});
  const auto a = features(first), b = features(second);
  const auto digit = Dense(10, {.activation = "softmax", .name = "digit"})(a);
  const auto both = Dense(64, {.activation = "relu"})(Concatenate()({a, b}));
  const auto distance = Dense(1, {.name = "distance"})(both);
  const keras::Model net({first, second}, {digit, distance});
  if (rank() == 0) std::printf("%s", net.summary().c_str());

  net.compile(
      {.optimizer = keras::distributed(keras::Adam()),
       .loss = std::map<std::string, Loss>{{"digit", "sparse_categorical_crossentropy"}, {"distance", "mse"}},
       .metrics = {"accuracy"},
       .loss_weights = {{"distance", .1}}});
  net.fit(train.x, train.y,
          {.batch_size = 64,
           .epochs = epochs,
           .callbacks = {BroadcastGlobalVariablesCallback(0)},
           .validation_data = test});
  const std::vector<double> score = net.evaluate(test, {.verbose = 0});
  const std::vector<std::string> names = net.metrics_names();
  for (std::size_t i = 0; rank() == 0 && i < score.size(); ++i)
    std::printf("test %s %.4f\n", names[i].c_str(), score[i]);
}
