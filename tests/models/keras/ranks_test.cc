// Training on several ranks: what Horovod's callbacks and its optimizer promise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/runtime/group.h>
#include <kolo/models/keras/distributed_callbacks.h>
#include <kolo/models/keras/model.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Output itself(const Scope& s, Output, Output p) { return reduce_sum(s, p, {.axes = {1}}); }
int rank() { return world_group().rank(); }

Sequential slope(Workspace& ws, const Optimizer& optimizer) {
  const Sequential net(ws,
                       {Dense(1, {.use_bias = false, .kernel_initializer = "zeros", .input_shape = {1}})});
  net.compile({.optimizer = optimizer, .loss = itself});
  return net;
}

TEST(Distributed, ClipsBeforeItAverages) {  // row 41
  if (world_group().size() != 2) GTEST_SKIP() << "of two ranks";
  Workspace ws;
  const Sequential net = slope(ws, distributed(SGD({.lr = 1, .clipvalue = 1})));
  net.train_on_batch(floats({1}, {rank() == 0 ? 3 : .5F}), floats({1}, {0}));
  EXPECT_FLOAT_EQ(net.get_weights()[0].value<float>(), -.75F);
}

TEST(Distributed, ComparesTheStepsOfAnEpoch) {  // row 43
  if (world_group().size() != 2) GTEST_SKIP() << "of two ranks";
  Workspace ws;
  const Sequential net = slope(ws, distributed(SGD()));
  const Tensor x = Tensor::zeros(DType::f32, {rank() == 0 ? 640 : 600});
  EXPECT_THAT([&] { net.fit(x, x, {.verbose = 0}); },
              ThrowsMessage<FailedPreconditionError>(
                  HasSubstr("Ranks disagree on the steps of an epoch: 20 on rank 0 but 19 on rank 1")));
}

TEST(MetricAverage, AveragesOverTheRanks) {  // row 42
  if (world_group().size() != 2) GTEST_SKIP() << "of two ranks";
  Workspace ws;
  const Sequential net = slope(ws, SGD());
  for (const bool weighted : {false, true}) {
    MetricAverageCallback average(weighted);
    average.attach(net, {.samples = rank() == 0 ? 30 : 10});
    Logs logs(Logs::Entries{{"loss", rank() == 0 ? .5 : .8}});
    average.on_epoch_end(0, logs);
    EXPECT_NEAR(*logs.find("loss"), weighted ? .575 : .65, 1e-12);
  }
}

TEST(Broadcast, MakesAllRanksStartAlike) {
  Workspace ws({.seed = 7 + static_cast<std::uint64_t>(rank())});
  const Sequential net(ws, {Dense(4, {.input_shape = {3}}), Dense(1)});
  net.compile({.optimizer = distributed(Adam({.lr = .01 * (1 + rank())})), .loss = "mse"});
  const Tensor x = Tensor::zeros(DType::f32, {8, 3}), y = Tensor::zeros(DType::f32, {8});
  net.fit(x, y,
          {.batch_size = 4, .epochs = 2, .verbose = 0, .callbacks = {BroadcastGlobalVariablesCallback(0)}});
  std::string own = fmt::format("{:a} {:a}", net.optimizer().lr().get(), net.optimizer().iterations().get());
  for (const Tensor& weight : net.get_weights())
    for (const float value : elements(weight)) own += fmt::format(" {:a}", value);
  for (const std::string& other : world_group().allgather(own)) EXPECT_EQ(other, own);
}

}  // namespace
}  // namespace kolo::keras
