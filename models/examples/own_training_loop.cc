// A training loop without a graph: each rank has samples of its own, gradients are averaged by the eager
// engine. mpirun -n 2 own_training_loop fits y = 3x + 1 as one rank with all samples would.
#include <cstdio>
#include <span>
#include <vector>

#include <kolo/kolo.h>

int main(int argc, char** argv) {
  kolo::init(&argc, &argv);

  std::vector<float> model(2);  // slope and offset
  if (kolo::rank() == 0) model = {0.5f, 0};
  kolo::broadcast(std::span(model), 0);  // all begin where rank 0 does

  float last_loss = 0;
  for (int step = 0; step < 300; ++step) {
    std::vector<float> gradient(2);
    float own_loss = 0;
    for (int i = kolo::rank(); i < 12; i += kolo::size()) {  // this rank's samples
      const float x = static_cast<float>(i) / 6 - 1;
      const float error = model[0] * x + model[1] - (3 * x + 1);
      own_loss += error * error;
      gradient[0] += 2 * error * x;
      gradient[1] += 2 * error;
    }
    // The loss travels while the gradient does; both are in one message.
    auto loss = kolo::allreduce_async(kolo::Tensor::scalar(own_loss), kolo::ReduceOp::sum, {.name = "loss"});
    kolo::allreduce(std::span(gradient), kolo::ReduceOp::sum, {.name = "gradient"});
    last_loss = loss.wait().value<float>();
    for (std::size_t k = 0; k < model.size(); ++k) model[k] -= 0.05f * gradient[k];
  }
  if (kolo::rank() == 0) std::printf("y = %.3f x + %.3f, loss %.6f\n", model[0], model[1], last_loss);
}
