// Steps on a GPU that is not there: what they say of bad values, what they round and where they go. What its
// ops make is compared with the CPU by gpu_numerics.
#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/debugging.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/feed_memory.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>
#include <tests/core/test_ops.h>
#include <tests/core/training/temporary_directory.h>

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Asked by the thread that launches the second addition: CUDA keeps what it has answered as an error.
TEST(OnAGpu, AStreamThatIsAskedBeforeItIsDoneGoesOn) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s, DType::f32, {2});
  const Output first = add(s.device("/gpu:0"), x, x);
  const Scope host = s.device("/cpu:0");
  const Output slow = host.add("TestAsync", {constant(host, 1.0f)}, {{"tag", std::int64_t{1}}});
  const Output second = add(s.device("/gpu:0").control_dependencies({Operation(slow.node)}), first, x);
  testing::on_call = [](std::int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1300)); };
  Session session(graph);
  const Tensor sum = session.run(second, {{x, Tensor::of<float>({2}, {1, 2})}});
  EXPECT_EQ(sum.span<float>()[1], 6);
  testing::on_call = [](std::int64_t) {};
}

TEST(FeedMemory, IsPinnedWhereASessionHasAGpu) {
  Graph graph;
  Session on_gpu(graph);
  EXPECT_THAT(feed_memory(on_gpu).name(), HasSubstr("pinned memory for GPU 0"));
  SessionConfig config;
  config.device_count["GPU"] = 0;
  Session on_cpu(graph, config);
  EXPECT_EQ(&feed_memory(on_cpu), &cpu_allocator());
}

// 1 + 2⁻¹² needs 12 bits.
TEST(ProductsOnAGpu, AreRoundedToTf32WhereThatIsAskedForAndNowhereElse) {
  SessionConfig alias;
  alias.gpu_options.allow_tf32 = true;
  for (const auto& [precision, start] : {std::pair(Precision::automatic, SessionConfig()),
                                         {Precision::f32, SessionConfig()},
                                         {Precision::tf32, SessionConfig()},
                                         {Precision::automatic, alias}}) {
    Graph graph;
    const Scope s = Scope(graph).device("/gpu:0");
    const Output x = placeholder(s, DType::f32, {1, 1});
    SessionConfig config = start;
    config.graph_options.precision = precision;
    const bool allowed = precision == Precision::tf32 || config.gpu_options.allow_tf32;
    Session session(graph, config);
    const Tensor number = Tensor::of<float>({1, 1}, {1 + 0x1p-12f});
    EXPECT_EQ(session.run(matmul(s, x, identity(s, x)), {{x, number}}).value<float>(),
              allowed ? 1 : (1 + 0x1p-12f) * (1 + 0x1p-12f));
  }
}

// A session whose nodes go to the GPU where they can.
struct OneGpu {
  explicit OneGpu(bool soft = false) { config.allow_soft_placement = soft; }
  Graph graph;
  Scope s{graph};
  SessionConfig config;
};

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "";
}

TEST(BadValuesOnAGpu, AreToldAtTheEndOfTheStepInTheWordsOfTheCpu) {
  OneGpu gpu;
  const Output labels = placeholder(gpu.s, DType::i32, {4});
  const auto loss_on = [&](const char* device) {
    const Scope s = gpu.s.device(device);
    return softmax_cross_entropy(s, constant(s, Tensor::of<float>({4, 3}, std::vector<float>(12, 0.5f))),
                                 labels);
  };
  const Output on_gpu = loss_on("/gpu:0"), on_cpu = loss_on("/cpu:0");
  Session session(gpu.graph, gpu.config);
  const auto run = [&](const Output& loss, std::vector<std::int32_t> values) {
    return session.run(loss, {{labels, Tensor::of<std::int32_t>({4}, values)}}).value<float>();
  };
  for (const std::vector<std::int32_t>& bad : {std::vector<std::int32_t>{0, 1, 3, -7}, {0, 1, 2, -7}}) {
    const std::string ours = error_of([&] { run(on_gpu, bad); });
    EXPECT_THAT(ours, HasSubstr("Received a label value of " + std::to_string(bad[2] == 3 ? 3 : -7)));
    const std::string theirs = error_of([&] { run(on_cpu, bad); });
    EXPECT_EQ(ours.substr(0, ours.find('[')), theirs.substr(0, theirs.find('[')));
    EXPECT_NEAR(run(on_gpu, {0, 1, 2, 0}), run(on_cpu, {0, 1, 2, 0}), 1e-6);  // and it is forgotten
  }
}

TEST(BadValuesOnAGpu, OfIndicesAndNumbersAreToldToo) {
  OneGpu gpu;
  const Output indices = placeholder(gpu.s, DType::i64, {3}), x = placeholder(gpu.s, DType::f32, {2});
  const Scope s = gpu.s.device("/gpu:0");
  const Output rows = gather(s, constant(s, Tensor::of<float>({5, 2}, std::vector<float>(10, 1))), indices);
  const Output checked = check_numerics(s, x, "x is bad");
  Session session(gpu.graph, gpu.config);
  EXPECT_THAT(error_of([&] {
                session.run(rows, {{indices, Tensor::of<std::int64_t>({3}, {4, -5000000000, 9})}});
              }),
              HasSubstr("Index -5000000000 at offset 1 in indices is out of range: there are 5 rows"));
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const auto check = [&](float a, float b) {
    return error_of([&] { session.run(checked, {{x, Tensor::of<float>({2}, {a, b})}}); });
  };
  EXPECT_THAT(check(nan, 1), HasSubstr("x is bad : Tensor had NaN values"));
  EXPECT_THAT(check(infinity, 1), HasSubstr("x is bad : Tensor had Inf values"));
  EXPECT_THAT(check(-infinity, nan), HasSubstr("x is bad : Tensor had Inf and NaN values"));
  EXPECT_EQ(check(1, 2), "");
}

TEST(BadValuesOnAGpu, AreToldOfRowsWithoutElementsToo) {
  OneGpu gpu;
  const Scope s = gpu.s.device("/gpu:0");
  const Output indices = placeholder(gpu.s, DType::i32, {2});
  const Output narrow = gather(s, constant(s, Tensor(DType::f32, {4, 0})), indices);
  const Output none = unsorted_segment_sum(s, constant(s, Tensor::zeros(DType::f32, {2, 3})), indices, 0);
  Session session(gpu.graph, gpu.config);
  const auto feeds = [&](std::vector<std::int32_t> values) {
    return Feeds{{indices, Tensor::of<std::int32_t>({2}, values)}};
  };
  EXPECT_EQ(error_of([&] { session.run(narrow, feeds({3, 0})); }), "");
  EXPECT_THAT(error_of([&] {
                session.run(narrow, feeds({3, 9}));
              }),
              HasSubstr("Index 9 at offset 1 in indices is out of range: there are 4 rows"));
  EXPECT_THAT(error_of([&] {
                session.run(none, feeds({0, 0}));
              }),
              HasSubstr("Index 0 at offset 0 in indices is out of range: there are 0 rows"));
}

// What the host computes from it does not hide where it comes from.
TEST(BadValuesOnAGpu, AreToldBeforeWhatFollowsOnTheHost) {
  OneGpu gpu;
  const Output labels = placeholder(gpu.s, DType::i32, {1});
  const Scope s = gpu.s.device("/gpu:0");
  const Output loss = softmax_cross_entropy(s, constant(s, Tensor::of<float>({1, 2}, {0.5f, 0.25f})), labels);
  const Output checked = check_numerics(gpu.s.device("/cpu:0"), loss, "the loss");
  Session session(gpu.graph, gpu.config);
  EXPECT_THAT(error_of([&] {
                session.run(checked, {{labels, Tensor::of<std::int32_t>({1}, {2})}});
              }),
              HasSubstr("Received a label value of 2"));
}

// A regression on one weight; its label is a row number as well.
struct SmallTraining {
  explicit SmallTraining(DistributedOptimizerOptions options = {})
      : optimizer(std::make_unique<GradientDescentOptimizer>(0.1), std::move(options)) {
    const Output logits = mul(s, reshape(s, x, {1, 3}), w.read());
    loss = softmax_cross_entropy(s, logits, label);
    train = optimizer.minimize(s, loss);
  }
  Graph graph;
  Scope s{graph};
  Variable w{s.named("w"), constant(s, Tensor::of<float>({3}, {1, 2, 3}))};
  Output x = placeholder(s, DType::f32, {3}), label = placeholder(s, DType::i32, {1});
  DistributedOptimizer optimizer;
  Output loss;
  Operation train;

  Feeds feeds(float number, std::int32_t row) const {
    return {{x, Tensor::of<float>({3}, {number, 1, -1})}, {label, Tensor::of<std::int32_t>({1}, {row})}};
  }
};

TEST(BadValuesOnAGpu, EndATrainingThatHasSavedWhatWasBeforeThem) {
  const TemporaryDirectory folder;
  SmallTraining net;
  const auto train = [&] {
    MonitoredTrainingSession session(net.graph,
                                     {.checkpoint_dir = folder.path(), .save_checkpoint_steps = 1});
    for (const std::int32_t row : {0, 2, 3, 1}) session.run(net.train, net.feeds(1, row));
    session.close();
  };
  EXPECT_THAT(error_of(train), HasSubstr("Received a label value of 3"));
  EXPECT_THAT(newest_intact_checkpoint(folder.path()).value_or(""), ::testing::EndsWith("-2"));
}

// A step without finite gradients is void there as well.
TEST(LossScalingOnAGpu, MovesAsOnTheCpu) {
  const auto seen = [](int gpus) {
    SmallTraining net({.loss_scale = DynamicLossScale{.initial = 8, .growth_steps = 2}});
    const Operation initializer = global_variables_initializer(net.s);
    SessionConfig config;
    config.device_count["GPU"] = gpus;
    Session session(net.graph, config);
    session.run(initializer);
    std::vector<float> seen;
    for (const float number : {1.0f, std::nanf(""), 2.0f, 3.0f, -1.0f, 0.5f}) {
      session.run(net.train, net.feeds(number, 1));
      seen.push_back(session.run(net.optimizer.loss_scale().read()).value<float>());
      const Tensor weights = session.run(net.w.read());
      seen.insert(seen.end(), weights.data<float>(), weights.data<float>() + 3);
    }
    return seen;
  };
  EXPECT_THAT(seen(1), ::testing::Pointwise(::testing::FloatNear(1e-5f), seen(0)));
}

// Nine dimensions of which no two are neighbours in both.
Output of_many_dimensions(const Scope& s) {
  const Output x = constant(s, Tensor::of<float>({2, 2, 2, 2, 2, 2, 2, 2, 2}, std::vector<float>(512, 1)));
  return transpose(s, add(s, x, x), {8, 7, 6, 5, 4, 3, 2, 1, 0});
}

TEST(DeclinedOnAGpu, NodesGoToTheCpuUnlessTheyWereAskedForThere) {
  for (const bool soft : {true, false})
    for (const bool asked : {true, false}) {
      SCOPED_TRACE(::testing::Message() << soft << asked);
      OneGpu gpu(soft);
      gpu.config.graph_options.optimizer_level = OptimizerLevel::l0;  // nothing is computed beforehand
      const Output y = of_many_dimensions(asked ? gpu.s.device("/gpu:0") : gpu.s);
      Session session(gpu.graph, gpu.config);
      for (int run = 0; run < 2; ++run) {
        if (soft || !asked) {
          ::testing::internal::CaptureStderr();
          EXPECT_EQ(session.run(y).data<float>()[511], 2);
          EXPECT_EQ(::testing::internal::GetCapturedStderr().find("9 dimensions") != std::string::npos,
                    run == 0);
        } else if (run == 0) {
          EXPECT_THAT([&] { session.run(y); }, ThrowsMessage<UnimplementedError>(
                                                   HasSubstr("9 dimensions that cannot be seen as fewer")));
        }
      }
    }
}

}  // namespace
}  // namespace kolo
