// Dense layers whose gradients' factors the ranks of a node read of each other: in parts where there are many
// rows, whole where there are few.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/registry.h>
#include <tests/core/test_ops.h>
#include <tests/mpi/dense_layer.h>

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

bool ranks_read() { return size() == 2 || size() == 3; }

struct Trained {
  explicit Trained(const Layer& layer, const DistributedOptimizerOptions& options = {},
                   const std::string& optimizer_name = "sgd")
      : layer_(layer), s_(graph_), w_(s_.named("w"), zeros(s_, DType::f32, {layer.inputs, layer.outputs})) {
    // Computed in the step, as a layer's activations are.
    x_ = mul(s_, constant(s_, matrix(layer.own_rows(), layer.inputs, rank())), testing::call(s_, 1));
    const Output c =
        mul(s_, constant(s_, matrix(layer.own_rows(), layer.outputs, rank() + 1)), testing::call(s_, 1));
    loss_ = reduce_sum(s_, mul(s_, matmul(s_, x_, w_), c));
    optimizer_ = std::make_unique<DistributedOptimizer>(
        make_optimizer(optimizer_name, {.learning_rate = kRate}), options);
    pairs_ = optimizer_->compute_gradients(s_, loss_);
    step_ = optimizer_->apply_gradients(s_, pairs_);
  }

  void start(const SessionConfig& config = {}) {
    session_ = std::make_unique<Session>(graph_, config);
    session_->run(global_variables_initializer(s_));
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) session_->run(step_);
  }
  Tensor w() { return session_->run(w_.read()); }
  // What w is after `steps` steps of SGD with a gradient of `times` the average.
  void expect_sgd(int steps, double times = 1) {
    const Tensor w = this->w();
    double worst = 0;
    layer_.for_some([&](std::int64_t e, double gradient) {
      worst = std::max(worst, std::abs(w.data<float>()[e] + kRate * steps * times * gradient));
    });
    EXPECT_LT(worst, 1e-6 * steps * times);
  }

  Layer layer_;
  Graph graph_;
  Scope s_;
  Variable w_;
  Output x_, loss_;
  std::unique_ptr<DistributedOptimizer> optimizer_;
  std::vector<GradientPair> pairs_;
  Operation step_;
  std::unique_ptr<Session> session_;
};

// Of so many rows that oneDNN makes the products, or kolo; of inputs that no number of ranks divides; of few
// rows for a large matrix.
const Layer kInParts{512, 1024, {40}}, kOfManyRows{2048, 2048, {128}}, kUneven{515, 544, {40}},
    kWhole{1025, 1040, {2}};

class SharedFactors : public ::testing::TestWithParam<Layer> {};

TEST_P(SharedFactors, GiveTheAverageOfAllRanksGradients) {
  Trained trained(GetParam());
  trained.start();
  trained.run(5);
  trained.expect_sgd(5);
}

TEST_P(SharedFactors, GiveTheSumWhereAsked) {
  Trained trained(GetParam(), {.op = ReduceOp::sum});
  trained.start();
  trained.run(1);
  trained.expect_sgd(1, size());
}

TEST_P(SharedFactors, LeaveTheSameBitsOnAllRanks) {
  for (const char* name : {"momentum", "adam"}) {
    Trained trained(GetParam(), {}, name);
    trained.start();
    trained.run(4);
    const std::string own = bytes_of(trained.w());
    EXPECT_TRUE(world_group().broadcast(own, 0) == own) << name;
  }
}

// One rank looks at the gradient in some of the steps: then nobody shares factors, and nothing else changes.
TEST_P(SharedFactors, GiveTheBitsThatStepsGiveInWhichOneRankLooksAtTheGradient) {
  Trained shared(GetParam(), {}, "momentum"), looked_at(GetParam(), {}, "momentum");
  shared.start();
  looked_at.start();
  shared.run(6);
  for (int step = 0; step < 6; ++step) {
    if (step % 3 != 1 || rank() != 0) {
      looked_at.run(1);
      continue;
    }
    const Tensor gradient = looked_at.session_->run({looked_at.step_, looked_at.pairs_[0].gradient})[1];
    GetParam().for_some([&](std::int64_t e, double expected) {
      ASSERT_NEAR(gradient.data<float>()[e], expected, 1e-6) << e;
    });
  }
  EXPECT_TRUE(bytes_of(shared.w()) == bytes_of(looked_at.w()));
}

// The activations lie in memory that other ranks read: what a step gives its caller stays as it was.
TEST_P(SharedFactors, LeaveFetchedActivationsAlone) {
  Trained trained(GetParam());
  trained.start();
  const Tensor x = trained.session_->run({trained.step_, trained.x_})[1];
  const std::string before = bytes_of(x);
  trained.run(2);
  EXPECT_TRUE(bytes_of(x) == before);
  EXPECT_TRUE(before == bytes_of(matrix(GetParam().own_rows(), GetParam().inputs, rank())));
  trained.expect_sgd(3);
}

std::string name_of(const ::testing::TestParamInfo<Layer>& info) {
  const Layer& layer = info.param;
  return std::to_string(layer.rows[0]) + "RowsOf" + std::to_string(layer.inputs) + "By" +
         std::to_string(layer.outputs);
}
INSTANTIATE_TEST_SUITE_P(Layers, SharedFactors, ::testing::Values(kInParts, kOfManyRows, kUneven, kWhole),
                         name_of);

// Whether this rank's step would make the gradient of what all ranks have.
bool wants_to_share(Trained& trained) {
  RunMetadata metadata;
  trained.session_->run(std::vector<Fetch>{trained.step_}, {}, {}, &metadata);
  return std::any_of(metadata.kernels.begin(), metadata.kernels.end(),
                     [](const KernelChoice& kernel) { return kernel.op == "ProductOfRanks"; });
}

TEST(SharedFactorsOfTwoOrThreeRanks, AreWantedWhereTheySaveMemoryTraffic) {
  for (const Layer& layer : {kInParts, kUneven, kWhole}) {
    Trained trained(layer);
    trained.start();
    EXPECT_EQ(wants_to_share(trained), ranks_read()) << layer.inputs;
  }
  const Layer many_rows{512, 1024, {64}}, small{256, 512, {4}};
  for (const Layer& layer : {many_rows, small}) {
    Trained trained(layer);
    trained.start();
    EXPECT_FALSE(wants_to_share(trained)) << layer.inputs;
    trained.expect_sgd(1);
  }
  Trained sharded(kInParts, {.sharded = true});
  sharded.start();
  EXPECT_FALSE(wants_to_share(sharded));
  sharded.expect_sgd(1);
  Trained compressed(kInParts, {.compression = fp16_compression()});
  compressed.start();
  EXPECT_FALSE(wants_to_share(compressed));
}

TEST(SharedFactorsOfTwoOrThreeRanks, AreLeftAloneWhereTheRanksHaveBatchesOfDifferentSizes) {
  Trained trained({512, 1024, {40, 39}});
  trained.start();
  trained.run(4);
  trained.expect_sgd(4);
}

// On rank 0 the gradient is a product, on the others the sum of two.
TEST(SharedFactorsOfTwoOrThreeRanks, AreLeftAloneWhereARankMakesTheGradientInAnotherWay) {
  Graph graph;
  Scope s(graph);
  const Layer& layer = kInParts;
  const Variable w(s.named("w"), zeros(s, DType::f32, {layer.inputs, layer.outputs}));
  const Output x = constant(s, matrix(layer.own_rows(), layer.inputs, rank())),
               c = constant(s, matrix(layer.own_rows(), layer.outputs, rank() + 1));
  Output loss = reduce_sum(s, mul(s, matmul(s, x, w), c));
  if (rank() > 0) loss = add(s, loss, reduce_sum(s, matmul(s, mul(s, x, constant(s, 0.0f)), w)));
  DistributedOptimizer optimizer(make_optimizer("sgd", {.learning_rate = kRate}));
  const Operation step = optimizer.minimize(s, loss);
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  const Tensor found = session.run(w.read());
  layer.for_some([&](std::int64_t e, double gradient) {
    ASSERT_NEAR(found.data<float>()[e], -kRate * gradient, 1e-6) << e;
  });
}

// The same rows are the input of both.
TEST(SharedFactorsOfTwoOrThreeRanks, MayBelongToSeveralGradients) {
  Graph graph;
  Scope s(graph);
  const Layer& layer = kInParts;
  const Variable v(s.named("v"), zeros(s, DType::f32, {layer.inputs, layer.outputs})),
      w(s.named("w"), zeros(s, DType::f32, {layer.inputs, layer.outputs}));
  const Output x = mul(s, constant(s, matrix(layer.own_rows(), layer.inputs, rank())), testing::call(s, 1));
  const Output c = constant(s, matrix(layer.own_rows(), layer.outputs, rank() + 1));
  const Output y = add(s, matmul(s, x, v), mul(s, matmul(s, x, w), constant(s, 2.0f)));
  DistributedOptimizer optimizer(make_optimizer("sgd", {.learning_rate = kRate}));
  const Operation step = optimizer.minimize(s, reduce_sum(s, mul(s, y, c)));
  Session session(graph);
  session.run(global_variables_initializer(s));
  for (int i = 0; i < 3; ++i) session.run(step);
  const Tensor left = session.run(v.read()), right = session.run(w.read());
  layer.for_some([&](std::int64_t e, double gradient) {
    ASSERT_NEAR(left.data<float>()[e], -3 * kRate * gradient, 3e-6) << e;
    ASSERT_NEAR(right.data<float>()[e], -6 * kRate * gradient, 6e-6) << e;
  });
}

// What a rank finds in its step, before it has anything to contribute, and what the others are told.
template <typename Error>
void fail_on_rank_0(const Error& error, const Layer& layer) {
  Trained trained(layer);
  trained.start();
  int calls = 0;
  testing::on_call = [&](std::int64_t) {
    if (++calls == 5 && rank() == 0) throw error;
  };
  const auto train = [&] { trained.run(10); };
  if (rank() == 0) EXPECT_THROW(train(), Error);
  else if (std::is_same_v<Error, OutOfRangeError>) EXPECT_THROW(train(), OutOfRangeError);
  else EXPECT_THAT(train, ThrowsMessage<AbortedError>(HasSubstr("rank 0 failed")));
  testing::on_call = [](std::int64_t) {};
  if (std::is_same_v<Error, OutOfRangeError>) {
    trained.run(1);
    trained.expect_sgd(3);
  }
}

TEST(SharedFactorsOfTwoOrThreeRanks, EndWithTheDataOfOneRankAndGoOn) {
  if (size() == 1) GTEST_SKIP() << "nobody is to be told";
  for (const Layer& layer : {kInParts, kWhole}) fail_on_rank_0(OutOfRangeError("no more data"), layer);
}

TEST(SharedFactorsOfTwoOrThreeRanks, EndWhereARankFails) {
  if (size() == 1) GTEST_SKIP() << "nobody is to be told";
  fail_on_rank_0(DataLossError("bad luck"), kInParts);
}

}  // namespace
}  // namespace kolo
