// Keras' convolutional network for handwritten digits over all ranks: mpirun -n 2 keras_mnist [EPOCHS [DATA]]
//
// EPOCHS are for each rank, 12 ÷ ranks if left out. DATA is the folder of MNIST's four files, or "generated"
// for digits that kolo draws. A model is saved behind each epoch as checkpoint-1.json and .safetensors, and
// so on.
#include <cstdio>
#include <optional>
#include <string>

#include <kolo/keras.h>
#include <kolo/kolo.h>

using namespace kolo;
using namespace kolo::keras;

int main(int argc, char** argv) {
  init(&argc, &argv);
  const std::int64_t epochs = argc > 1 ? std::stoll(argv[1]) : (12 + size() - 1) / size();
  const auto data = argc > 2 ? std::optional<std::string>(argv[2]) : std::nullopt;

  SessionConfig config;  // pin the GPU of this local rank
  config.gpu_options.visible_device_list = "local";
  keras::Workspace ws({.config = config});

  Samples train = load_mnist(ws, models::Split::train, data),
          test = load_mnist(ws, models::Split::test, data);
  train.y = to_categorical(train.y.tensor(), 10);
  test.y = to_categorical(test.y.tensor(), 10);

  keras::Sequential net(
      ws, {Conv2D(32, {3, 3}, {.activation = "relu", .input_shape = {1, 28, 28}}),
           Conv2D(64, {3, 3}, {.activation = "relu"}), MaxPooling2D(), Dropout(.25), Flatten(),
           Dense(128, {.activation = "relu"}), Dropout(.5), Dense(10, {.activation = "softmax"})});
  net.compile({.optimizer = keras::distributed(keras::Adadelta({.lr = 1.0 * size()})),
               .loss = "categorical_crossentropy",
               .metrics = {"accuracy"}});
  net.fit(train.x, train.y,
          {.batch_size = 128,
           .epochs = epochs,
           .callbacks = {BroadcastGlobalVariablesCallback(0), ModelCheckpoint("checkpoint-{epoch}")},
           .validation_data = test});
  const std::vector<double> score = net.evaluate(test, {.verbose = 0});
  if (rank() == 0) std::printf("test loss %.4f, accuracy %.4f\n", score[0], score[1]);
}
