// Ranks whose parts of a step differ in size train as one rank does with all of its samples: row 23 of the
// worked examples, beside what a training may do with gradients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>
#include <kolo/models/batches.h>
#include <kolo/models/data.h>
#include <kolo/models/layers.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/hooks.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

using models::BatchOptions;
using models::EpochEnd;

// A network of two dense layers that is trained on digits.
class Training {
 public:
  // options: none for the one rank.
  Training(const BatchOptions& batches, const std::optional<DistributedOptimizerOptions>& options,
           std::int64_t samples, std::int64_t units, bool is_normalized)
      : batches_(models::generated_digits(1, 0, samples), with_layout(batches)) {
    graph_.set_seed(3);
    Output hidden = models::dense(s_, x_, units, "fc1");
    if (is_normalized)
      hidden = options ? models::sync_batch_norm(s_, hidden, "bn") : models::batch_norm(s_, hidden, "bn");
    hidden = tanh(s_, hidden);
    loss_ = mul(s_, softmax_cross_entropy(s_, models::dense(s_, hidden, 10, "fc2"), labels_), weight_);
    std::unique_ptr<Optimizer> optimizer =
        make_optimizer("momentum", {.learning_rate = 0.1, .momentum = 0.5});
    if (options) optimizer = std::make_unique<DistributedOptimizer>(std::move(optimizer), *options);
    train_ = optimizer->minimize(s_, loss_);
    initializer_ = global_variables_initializer(s_);
  }

  void start() {
    session_.emplace(graph_);
    session_->run(initializer_);
  }
  // The loss of a step, by this rank's weight.
  float run() {
    models::Batch batch;
    batches_.next(batch);
    const auto values = session_->run(
        {loss_, train_},
        {{x_, batch.samples}, {labels_, batch.labels}, {weight_, Tensor::scalar(batch.weight)}});
    return values[0].value<float>();
  }
  std::vector<Tensor> weights() {
    std::vector<Tensor> all;
    for (const Variable& variable : trainable_variables(graph_))
      all.push_back(session_->run(variable.read()));
    return all;
  }

 private:
  static BatchOptions with_layout(BatchOptions options) {
    options.layout = models::ImageLayout::flat;
    return options;
  }
  Graph graph_;
  Scope s_{graph_};
  models::Batches batches_;
  Output x_ = placeholder(s_, DType::f32, {-1, 784}), labels_ = placeholder(s_, DType::i32, {-1}),
         weight_ = placeholder(s_, DType::f32, {}), loss_;
  Operation train_, initializer_;
  std::optional<Session> session_;
};

struct Case {
  BatchOptions batches = {};
  std::int64_t samples = 1000, units = 32;
  int steps = 3;
  double within = 1e-6;
  bool is_normalized = false;  // over the samples of all ranks
};

// All ranks, and beside them one that takes all samples.
void expect_like_one_rank(const Case& c, DistributedOptimizerOptions options = {}) {
  BatchOptions together = c.batches, alone = c.batches;
  together.rank = rank();
  together.ranks = size();
  alone.passes = 1;
  options.backward_passes_per_step = c.batches.passes;
  options.average_aggregated_gradients = true;
  Training all(together, options, c.samples, c.units, c.is_normalized),
      one(alone, std::nullopt, c.samples, c.units, c.is_normalized);
  all.start();
  one.start();
  for (int step = 0; step < c.steps; ++step) {
    double own = 0;
    for (int pass = 0; pass < c.batches.passes; ++pass)
      own += static_cast<double>(all.run()) / c.batches.passes;
    const double loss = one.run();
    EXPECT_NEAR(average_metrics({{"loss", own}}).at("loss"), loss, std::max(c.within, 1e-6)) << step;
  }
  const auto found = all.weights(), expected = one.weights();
  ASSERT_EQ(found.size(), c.is_normalized ? 6U : 4U);
  for (std::size_t i = 0; i < found.size(); ++i)
    for (std::int64_t e = 0; e < found[i].elements(); ++e)
      ASSERT_NEAR(found[i].data<float>()[e], expected[i].data<float>()[e], c.within) << i << " " << e;
}

const BatchOptions kHundred = {.global_batch_size = 100};

TEST(UnequalBatches, TrainAsOneRankDoes) { expect_like_one_rank({.batches = kHundred}); }

// Matrices whose gradients ranks read of each other, or make of each other's factors.
TEST(UnequalBatches, TrainAsOneRankDoesWithLargeLayers) {
  expect_like_one_rank({.batches = kHundred, .units = 1024});
  expect_like_one_rank({.batches = {.global_batch_size = 10}, .units = 1024});
}

TEST(UnequalBatches, TrainAsOneRankDoesInSeveralPasses) {
  expect_like_one_rank({.batches = {.global_batch_size = 100, .passes = 3}});
}

TEST(UnequalBatches, TrainAsOneRankDoesWhereEachKeepsAPartOfTheState) {
  expect_like_one_rank({.batches = kHundred}, {.sharded = true});
}

TEST(UnequalBatches, TrainAsOneRankDoesWithCompression) {
  expect_like_one_rank({.batches = kHundred, .within = 1e-3}, {.compression = fp16_compression()});
  expect_like_one_rank({.batches = kHundred, .within = 1e-2}, {.compression = bf16_compression()});
}

// 102 samples in steps of 25: the last one has two, which are fewer than three or four ranks.
TEST(UnequalBatches, TrainAsOneRankDoesWhereALastStepLeavesRanksWithoutSamples) {
  expect_like_one_rank(
      {.batches = {.global_batch_size = 25, .epoch_end = EpochEnd::fill}, .samples = 102, .steps = 7});
  expect_like_one_rank({.batches = {.global_batch_size = 25, .passes = 2, .epoch_end = EpochEnd::fill},
                        .samples = 102,
                        .steps = 7});
}

// The stand-ins are all of the step's samples, so that they change neither mean nor variance.
TEST(UnequalBatches, TrainAsOneRankDoesWhereSamplesAreNormalized) {
  for (const std::int64_t samples : {100, 102, 105})
    expect_like_one_rank({.batches = {.global_batch_size = 25, .epoch_end = EpochEnd::fill},
                          .samples = samples,
                          .steps = 6,
                          .within = 1e-4,
                          .is_normalized = true});
}

}  // namespace
}  // namespace kolo
