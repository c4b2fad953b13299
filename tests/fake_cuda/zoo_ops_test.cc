// What layers, losses and optimizers put on a GPU that is not there, against the CPU.
#include <gmock/gmock.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/attention.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/debugging.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/normalization.h>
#include <kolo/core/ops/pooling.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/slicing.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/gradient_descent.h>
#include <tests/core/training/temporary_directory.h>

#include "on_a_gpu.h"

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The gradient of input `of`, for the gradient 1, 2, 3, … of what `build` makes.
Build gradient(Build build, std::size_t of) {
  return [=](const Scope& s, const Outputs& in) {
    Scope own = s;
    const Output y = build(own, in);
    std::vector<float> ramp;
    for (std::int64_t i = 1; i <= y.shape().elements(); ++i) ramp.push_back(0.01f * static_cast<float>(i));
    const Output dy = constant(own, Tensor::of<float>(y.shape(), ramp));
    return gradients(own, {y}, {in[of]}, {dy})[0];
  };
}
void expect_cpu_results(const Build& build, const std::vector<Shape>& shapes, double per_element = 1e-6) {
  expect_cpu_result(build, shapes, per_element);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "gradient " << i);
    expect_cpu_result(gradient(build, i), shapes, per_element);
  }
}

Output numbers(const Scope& s, const Shape& shape, std::vector<std::int32_t> values) {
  return constant(s, Tensor::of<std::int32_t>(shape, values));
}

TEST(MovesOnAGpu, AreTheCpus) {
  const std::vector<Build> moves = {
      [](const Scope& s, const Outputs& in) {
        return transpose(s, in[0], {2, 0, 1});
      },
      [](const Scope& s, const Outputs& in) {
        return slice(s, in[0], {1, 0, 2}, {2, 5, 3});
      },
      [](const Scope& s, const Outputs& in) {
        return strided_slice(s, in[0], {3, 4, 0}, {0, 0, 6}, {-1, -2, 3});
      },
      [](const Scope& s, const Outputs& in) {
        return reverse(s, in[0], {0, -1});
      },
      [](const Scope& s, const Outputs& in) { return batch_slice(s, in[0], 1, 3); },
      [](const Scope& s, const Outputs& in) { return batch_slice(s, in[0], 2, 3); },
      [](const Scope& s, const Outputs& in) {
        return pad(s, in[0], {{1, 0}, {0, 2}, {3, 1}}, -2.5);
      },
      [](const Scope& s, const Outputs& in) {
        return tile(s, in[0], {2, 1, 3});
      },
      [](const Scope& s, const Outputs& in) {
        return broadcast_to(s, slice(s, in[0], {0, 0, 0}, {4, 1, 6}), {3, 4, 5, 6});
      },
      [](const Scope& s, const Outputs& in) {
        return concat(s, {in[0], in[0], neg(s, in[0])}, 1);
      },
      [](const Scope& s, const Outputs& in) {
        return split_v(s, in[0], {1, 3, 1}, 1)[1];
      },
      [](const Scope& s, const Outputs& in) {
        return gather(s, in[0], numbers(s, {2, 2}, {4, 0, 4, 1}), 1);
      },
  };
  for (std::size_t i = 0; i < moves.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "move " << i);
    expect_cpu_results(moves[i], {{4, 5, 6}}, 1e-6);
  }
}

TEST(MovesOnAGpu, OfRowsByNumberAreTheCpus) {
  const auto indices = [](const Scope& s) { return numbers(s, {5}, {2, 0, 2, 6, 0}); };
  expect_cpu_result(
      [&](const Scope& s, const Outputs& in) { return unsorted_segment_sum(s, in[0], indices(s), 7); },
      {{5, 33}}, 0);
  expect_cpu_result(
      [&](const Scope& s, const Outputs& in) {
        return add(s, in[0], one_hot(s, indices(s), 7, {.on = 3, .off = -1, .axis = 0}));
      },
      {{7, 5}}, 0);
}

TEST(NormsOnAGpu, AreTheCpus) {
  expect_cpu_result([](const Scope& s, const Outputs& in) { return l2_loss(s, in[0]); }, {{50, 77}});
  expect_cpu_result([](const Scope& s, const Outputs& in) { return global_norm(s, in); },
                    {{3000}, {1}, {7, 0}, {64, 65}});
  expect_cpu_result(
      [](const Scope& s, const Outputs& in) {
        const Output bad = div(s, in[1], sub(s, in[1], in[1]));
        return add(s, cast(s, all_finite(s, {in[0], in[1]}), DType::f32),
                   mul(s, cast(s, all_finite(s, {in[0], bad}), DType::f32), constant(s, 2.0f)));
      },
      {{5000}, {3}}, 0);
}

TEST(NormalizationOnAGpu, IsTheCpus) {
  const auto batch = [](int output) -> Build {
    return [output](const Scope& s, const Outputs& in) {
      const Outputs moving = {constant(s, Tensor::of<float>({3}, {0.5f, -1, 2})),
                              constant(s, Tensor::of<float>({3}, {1, 2, 3}))};
      const auto result = batch_norm(s, in[0], in[1], in[2], moving[0], moving[1], {.momentum = 0.9});
      return output == 0 ? result.y : output == 1 ? result.moving_mean : result.moving_variance;
    };
  };
  expect_cpu_results(batch(0), {{6, 3, 9, 7}, {3}, {3}}, 2e-5);
  expect_cpu_results(batch(0), {{40, 3, 10, 11}, {3}, {3}}, 2e-4);  // in several parts
  for (const int output : {1, 2}) expect_cpu_result(batch(output), {{6, 3, 9, 7}, {3}, {3}}, 1e-5);
  expect_cpu_results([](const Scope& s, const Outputs& in) { return layer_norm(s, in[0], in[1], in[2]); },
                     {{70, 33}, {33}, {33}}, 1e-4);
  expect_cpu_result(
      [](const Scope& s, const Outputs& in) {
        return batch_norm_inference(s, in[0], in[1], in[2], in[3], square(s, in[4]));
      },
      {{4, 5, 6}, {5}, {5}, {5}, {5}}, 1e-5);
}

TEST(AttentionOnAGpu, IsTheCpus) {
  for (const bool causal : {false, true})
    expect_cpu_results(
        [=](const Scope& s, const Outputs& in) {
          return self_attention(s, in[0], {.heads = 2, .causal = causal});
        },
        {{2, 70, 30}}, 1e-4);
}

TEST(PoolingOnAGpu, OfMeansIsTheCpus) {
  for (const Padding padding : {Padding::same, Padding::valid})
    expect_cpu_results(
        [=](const Scope& s, const Outputs& in) {
          return avg_pool(s, in[0], {.window = {3, 2}, .strides = {2, 1}, .padding = padding});
        },
        {{2, 3, 7, 6}});
}

TEST(ActivationsOnAGpu, AreTheCpus) {
  const std::vector<Build> activations = {
      [](const Scope& s, const Outputs& in) { return gelu(s, in[0]); },
      [](const Scope& s, const Outputs& in) { return gelu(s, in[0], true); },
      [](const Scope& s, const Outputs& in) { return swish(s, in[0]); },
      [](const Scope& s, const Outputs& in) { return elu(s, in[0], 0.7); },
      [](const Scope& s, const Outputs& in) { return selu(s, in[0]); },
      [](const Scope& s, const Outputs& in) { return leaky_relu(s, in[0]); },
      [](const Scope& s, const Outputs& in) { return softplus(s, in[0]); },
      [](const Scope& s, const Outputs& in) { return relu6(s, mul(s, in[0], constant(s, 9.0f))); },
      [](const Scope& s, const Outputs& in) { return sin(s, in[0]); },
      [](const Scope& s, const Outputs& in) { return cos(s, in[0]); },
      [](const Scope& s, const Outputs& in) { return log_softmax(s, in[0], 0); },
  };
  for (std::size_t i = 0; i < activations.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "activation " << i);
    expect_cpu_results(activations[i], {{9, 33}}, 2e-6);
  }
}

// The same bits: of one seed both draw the same words.
TEST(RandomNumbersOnAGpu, AreTheCpus) {
  const std::vector<Build> draws = {
      [](const Scope& s, const Outputs&) { return random_uniform(s, DType::f32, {1001}, -2, 3, 5); },
      [](const Scope& s, const Outputs&) { return random_normal(s, DType::f32, {1001}, 1, 2, 5); },
      [](const Scope& s, const Outputs&) { return truncated_normal(s, DType::f32, {1001}, 1, 2, 5); },
      [](const Scope& s, const Outputs& in) { return gaussian_noise(s, in[0], 0.3, 5); },
      gradient([](const Scope& s, const Outputs& in) { return gaussian_noise(s, in[0], 0.3, 5); }, 0),
      [](const Scope& s, const Outputs& in) { return dropout(s, in[0], 0.3, 5); },
      gradient([](const Scope& s, const Outputs& in) { return dropout(s, in[0], 0.3, 5); }, 0),
  };
  for (std::size_t i = 0; i < draws.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "draw " << i);
    expect_cpu_result(draws[i], {{999}}, 0);
  }
}

TEST(CastsOnAGpu, OfAllTypesAreTheCpus) {
  for (const DType type :
       {DType::f16, DType::bf16, DType::f64, DType::i8, DType::u8, DType::i32, DType::i64, DType::boolean}) {
    SCOPED_TRACE(name(type));
    expect_cpu_result(
        [=](const Scope& s, const Outputs& in) {
          return cast(s, cast(s, mul(s, in[0], constant(s, 100.0f)), type), DType::f32);
        },
        {{4000}}, 0);
  }
}

TEST(BranchesOnAGpu, JoinThere) {
  for (const bool taken : {true, false})
    expect_cpu_result(
        [=](const Scope& s, const Outputs& in) {
          const Output condition =
              greater(s, reduce_sum(s, square(s, in[0])), constant(s, taken ? 0.0f : 1e9f));
          return cond(
              s, condition, [&](const Scope& own) { return Outputs{neg(own, in[0])}; },
              [&](const Scope& own) { return Outputs{exp(own, in[0])}; })[0];
        },
        {{5, 7}});
}

// 1 + 2⁻¹² needs 12 bits.
TEST(ProductsOnAGpu, AreRoundedToTf32WhereThatIsAllowedAndNowhereElse) {
  for (const bool allowed : {false, true}) {
    Graph graph;
    const Scope s = Scope(graph).device("/gpu:0");
    const Output x = placeholder(s, DType::f32, {1, 1});
    SessionConfig config;
    config.gpu_options.allow_tf32 = allowed;
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
          EXPECT_EQ(session.run(y).data<float>()[511], 2);
        } else if (run == 0) {
          EXPECT_THAT([&] { session.run(y); }, ThrowsMessage<UnimplementedError>(
                                                   HasSubstr("9 dimensions that cannot be seen as fewer")));
        }
      }
    }
}

}  // namespace
}  // namespace kolo
