// A batch of 256 shared out among all GPUs of this process, 32 for each of eight:
// KOLO_VIRTUAL_GPUS=8 keras_multi_gpu [EPOCHS [DATA]]
//
// DATA is the folder of MNIST's four files, or "generated" for digits that kolo draws.
#include <cstdio>
#include <optional>
#include <string>

#include <kolo/keras.h>
#include <kolo/kolo.h>

using namespace kolo;
using namespace kolo::keras;

namespace {

keras::Sequential network(keras::Workspace& ws) {
  const auto on_cpu = ws.device("/cpu:0");  // the weights; the replicas compute where they are told
  return keras::Sequential(
      ws, {Conv2D(16, {3, 3}, {.activation = "relu", .input_shape = {1, 28, 28}}), MaxPooling2D(), Flatten(),
           Dense(64, {.activation = "relu"}), Dense(10, {.activation = "softmax"})});
}

void train(std::int64_t epochs, const std::optional<std::string>& data) {
  keras::Workspace ws;
  const keras::Sequential net = network(ws);
  const keras::Model parallel = multi_gpu_model(net);
  parallel.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});

  const Samples train = load_mnist(ws, models::Split::train, data),
                test = load_mnist(ws, models::Split::test, data);
  parallel.fit(train.x, train.y, {.batch_size = 256, .epochs = epochs, .validation_data = test});
  const std::vector<double> score = parallel.evaluate(test, {.batch_size = 256, .verbose = 0});
  std::printf("test loss %.4f, accuracy %.4f\n", score[0], score[1]);
  parallel.save("multi_gpu");  // the template: load_model reads it on any machine
}

}  // namespace

int main(int argc, char** argv) try {
  init(&argc, &argv);
  train(argc > 1 ? std::stoll(argv[1]) : 3, argc > 2 ? std::optional<std::string>(argv[2]) : std::nullopt);
} catch (const Error& error) {
  std::fprintf(stderr, "%s\nWithout GPUs: KOLO_VIRTUAL_GPUS=8 keras_multi_gpu\n", error.what());
  return 1;
}
