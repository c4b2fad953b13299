#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <string>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/runtime/group.h>
#include <models/examples/libtorch_mnist/averaged_gradients.h>

namespace kolo {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t kBatch = 12, kFeatures = 30, kClasses = 5;
constexpr int kSteps = 15;

torch::nn::Sequential perceptron() {
  return torch::nn::Sequential(torch::nn::Linear(kFeatures, 40), torch::nn::ReLU(),
                               torch::nn::Linear(40, kClasses));
}

struct Samples {
  torch::Tensor features, labels;
};

// The same on all ranks: those of a step over all of them.
Samples global_batch(int step) {
  torch::manual_seed(1000 + static_cast<std::uint64_t>(step));
  const std::int64_t samples = kBatch * size();
  return {torch::randn({samples, kFeatures}), torch::randint(kClasses, {samples}, torch::kLong)};
}

torch::Tensor loss_of(torch::nn::Sequential& model, const Samples& samples) {
  return torch::nn::functional::cross_entropy(model->forward(samples.features), samples.labels);
}

// The mean of the ranks' losses of each step.
std::vector<double> train_on_shares(torch::nn::Sequential& model) {
  AveragedGradients gradients(*model);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const Samples all = global_batch(step);
    const std::int64_t begin = rank() * kBatch, end = begin + kBatch;
    gradients.zero();
    const torch::Tensor loss =
        loss_of(model, {all.features.slice(0, begin, end), all.labels.slice(0, begin, end)});
    loss.backward();
    gradients.wait();
    optimizer.step();
    double sum = 0;
    for (const std::string& text : world_group().allgather(std::to_string(loss.item<double>())))
      sum += std::stod(text);
    losses.push_back(sum / size());
  }
  return losses;
}

std::vector<double> train_alone_on_all(torch::nn::Sequential& model) {
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const torch::Tensor loss = loss_of(model, global_batch(step));
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

std::string bits_of(const torch::nn::Module& model) {
  std::string bits;
  for (const torch::Tensor& parameter : model.parameters())
    bits.append(static_cast<const char*>(parameter.data_ptr()), parameter.nbytes());
  return bits;
}

TEST(Libtorch, BroadcastsRankZerosParameters) {
  torch::manual_seed(static_cast<std::uint64_t>(rank()));
  const torch::nn::Sequential model = perceptron();
  broadcast_module(*model);
  torch::manual_seed(0);
  EXPECT_EQ(bits_of(*model), bits_of(*perceptron()));
}

TEST(Libtorch, RanksTogetherLoseWhatOneLosesOnTheWholeBatch) {
  torch::manual_seed(7);
  torch::nn::Sequential shared = perceptron();
  torch::manual_seed(7);
  torch::nn::Sequential alone = perceptron();
  const std::vector<double> expected = train_alone_on_all(alone), losses = train_on_shares(shared);
  for (int step = 0; step < kSteps; ++step)
    EXPECT_NEAR(losses[step], expected[step], 1e-4 * expected[step]) << "step " << step;
  EXPECT_LT(losses.back(), losses.front() + 0.5) << "it must not diverge";
}

TEST(Libtorch, AllRanksHoldEqualParameters) {
  torch::manual_seed(3);
  torch::nn::Sequential model = perceptron();
  const std::string before = bits_of(*model);
  train_on_shares(model);
  EXPECT_NE(bits_of(*model), before);
  EXPECT_THAT(world_group().allgather(bits_of(*model)), Each(bits_of(*model)));
}

TEST(Libtorch, KeepsGradientsInTheBuckets) {
  torch::nn::Sequential model = perceptron();
  AveragedGradients gradients(*model);
  gradients.zero();
  loss_of(model, global_batch(0)).backward();
  gradients.wait();
  int index = 0;
  for (const torch::Tensor& parameter : model->parameters())
    EXPECT_EQ(parameter.grad().data_ptr(), gradients.buckets().memory(index++));
}

TEST(Libtorch, NamesAParameterThatTheLossDoesNotDependOn) {
  torch::nn::Sequential model = perceptron();
  AveragedGradients gradients(*model);
  gradients.zero();
  model->named_parameters()["0.weight"].sum().backward();
  EXPECT_THAT([&] { gradients.wait(); }, ThrowsMessage<FailedPreconditionError>(
                                             HasSubstr("3 of 4 gradients are not ready: \"0.bias\"")));
}

}  // namespace
}  // namespace kolo
