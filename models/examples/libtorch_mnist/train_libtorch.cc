// Trains LeNet on handwritten digits with libtorch over all ranks: mpirun -n 2 train_libtorch [STEPS [DATA]]
//
// libtorch computes and updates, kolo averages the gradients while the backward pass goes on and cuts the
// batches. DATA is the folder of MNIST's four files, or "generated" for digits that kolo draws; left out,
// they are sought in $KOLO_DATA_DIR/mnist and data/mnist.
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include <torch/torch.h>

#include <kolo/collectives/job/init.h>
#include <kolo/models/batches.h>
#include <kolo/models/data.h>
#include <models/examples/libtorch_mnist/averaged_gradients.h>

namespace {

torch::nn::Sequential lenet() {
  using namespace torch::nn;
  return Sequential(Conv2d(Conv2dOptions(1, 32, 5).padding(2)), ReLU(), MaxPool2d(2),
                    Conv2d(Conv2dOptions(32, 64, 5).padding(2)), ReLU(), MaxPool2d(2), Flatten(),
                    Linear(7 * 7 * 64, 1024), ReLU(), Linear(1024, 10));
}

torch::Tensor view_of(const kolo::Tensor& tensor, torch::ScalarType type) {
  return torch::from_blob(tensor.raw(), tensor.shape().dims(), type);
}

void train(std::int64_t steps, const std::optional<std::string>& data) {
  kolo::models::Batches batches(*kolo::models::load_digits(data, kolo::models::Split::train),
                                {.rank = kolo::rank(), .ranks = kolo::size()});
  torch::nn::Sequential model = lenet();
  broadcast_module(*model);
  AveragedGradients gradients(*model);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));

  kolo::models::Batch batch;
  for (std::int64_t step = 1; step <= steps; ++step) {
    batches.next(batch);
    const torch::Tensor images = view_of(batch.samples, torch::kFloat),
                        labels = view_of(batch.labels, torch::kInt).to(torch::kLong);
    gradients.zero();
    const torch::Tensor loss = torch::nn::functional::cross_entropy(model->forward(images), labels);
    loss.backward();
    gradients.wait();
    optimizer.step();
    if (kolo::rank() == 0 && (step % 50 == 0 || step == steps))
      std::printf("step %lld: loss %.4f\n", static_cast<long long>(step), loss.item<double>());
  }
}

}  // namespace

int main(int argc, char** argv) {
  kolo::init(&argc, &argv);
  torch::set_num_threads(1);  // one process for each core
  const std::int64_t steps = argc > 1 ? std::stoll(argv[1]) : 1000;
  train(steps, argc > 2 ? std::optional<std::string>(argv[2]) : std::nullopt);
}
