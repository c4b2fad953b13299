// Steps that draw random numbers, kept as graphs: each has the CPU's numbers, since the position in their
// sequence lies apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/device/gpu_platform.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/runtime/session.h>
#include <tests/core/test_ops.h>

namespace kolo {
namespace {

constexpr std::int64_t kRows = 7, kWidth = 50;
using Build = std::function<Output(const Scope& s, Output x)>;

Tensor input() {
  Tensor x(DType::f32, {kRows, kWidth});
  for (std::int64_t i = 0; i < x.elements(); ++i) x.data<float>()[i] = static_cast<float>(i % 13) - 5;
  return x;
}

std::vector<Tensor> run_steps(const Build& build, const std::string& device, int steps) {
  Graph graph;
  const Scope s = Scope(graph).device(std::string_view(device));
  const Output x = placeholder(s, DType::f32, {kRows, kWidth}), y = build(s, x);
  Session session(graph);
  std::vector<Tensor> values;
  for (int i = 0; i < steps; ++i) values.push_back(session.run(y, {{x, input()}}));
  return values;
}

void expect_the_cpus(const Build& build) {
  constexpr int kSteps = 20;
  const auto ours = run_steps(build, "/gpu:0", kSteps), theirs = run_steps(build, "/cpu:0", kSteps);
  for (int i = 0; i < kSteps; ++i)
    EXPECT_EQ(std::memcmp(ours[i].raw(), theirs[i].raw(), ours[i].bytes()), 0) << "step " << i;
  EXPECT_NE(std::memcmp(ours[0].raw(), ours[1].raw(), ours[0].bytes()), 0) << "both draw the same";
}

// Each element of what is drawn is rounded once.
Output layers(const Scope& s, Output x) {
  const Output dropped = dropout(s, mul(s, x, x), 0.25, 7);
  // Of more numbers than the others draw, so that their positions differ.
  const Output drawn = random_uniform(s, DType::f32, {2 * kRows, kWidth}, 0, 1, 5);
  const Output noise = slice(s, drawn, {0, 0}, {kRows, kWidth});
  return dropout(s, sub(s, dropped, mul(s, noise, noise)), 0.5, 8);
}

TEST(Draws, OfKeptStepsAreTheCpus) { expect_the_cpus(layers); }

TEST(Draws, AreOnePieceOfWorkBesideTheGraph) {
  const auto launches = [] { return gpu_platform(DeviceOptions())->counts()->launches; };
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Output x = placeholder(s, DType::f32, {kRows, kWidth}), y = layers(s, x);
  Session session(graph);
  for (int i = 0; i < 3; ++i) session.run(y, {{x, input()}});  // each frame keeps its own graph
  const std::int64_t before = launches();
  for (int i = 0; i < 10; ++i) session.run(y, {{x, input()}});
  EXPECT_EQ(launches() - before, 10 * 2);
}

// A run waits for the host, so that both are under way and each has its own memory.
TEST(Frames, OfTwoRunsAtATimeHaveTheirOwnGraphs) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0"), host = Scope(graph).device("/cpu:0");
  const Output x = placeholder(s, DType::f32, {kRows, kWidth});
  Output y = x;
  for (int i = 0; i < 6; ++i) y = add(s, y, x);
  const Output slow = host.add("TestAsync", {constant(host, 1.0f)}, {{"tag", std::int64_t{1}}});
  testing::on_call = [](std::int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
  Session session(graph);
  const auto run = [&](float number) {
    try {
      for (int step = 0; step < 6; ++step) {
        Tensor fed(DType::f32, {kRows, kWidth});
        std::fill_n(fed.data<float>(), fed.elements(), number += 2);
        EXPECT_EQ(session.run({y, slow}, {{x, fed}})[0].data<float>()[9], 7 * number) << "step " << step;
      }
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  };
  std::jthread other(run, 1.0f);
  run(2);
  other.join();
  testing::on_call = [](std::int64_t) {};
}

TEST(Loops, LaunchOneGraphAnIteration) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0"), host = Scope(graph).device("/cpu:0");
  const Output x = placeholder(s, DType::f32, {kRows, kWidth}), times = placeholder(host, DType::f32, {});
  const auto grows = [&](const Scope& b, const Outputs& v) {
    Output y = v[1];
    for (int i = 0; i < 5; ++i) y = sub(b.device("/gpu:0"), y, v[2]);
    return Outputs{add(b.device("/cpu:0"), v[0], constant(b.device("/cpu:0"), 1.0f)), y, v[2]};
  };
  const Output y =
      while_loop(s, [&](const Scope& c, const Outputs& v) { return less(c.device("/cpu:0"), v[0], times); },
                 grows, {constant(host, 0.0f), x, x})[1];
  SessionConfig config;
  config.graph_options.optimizer_level = OptimizerLevel::l0;  // each subtraction is a kernel
  Session session(graph, config);
  const auto launches_of = [&](float iterations) {
    const auto count = [] { return gpu_platform(DeviceOptions())->counts()->launches; };
    const std::int64_t before = count();
    const Tensor found = session.run(y, {{x, input()}, {times, Tensor::scalar(iterations)}});
    EXPECT_EQ(found.data<float>()[3], input().data<float>()[3] * (1 - 5 * iterations));
    return count() - before;
  };
  for (int run = 0; run < 4; ++run) launches_of(10);  // a loop holds its frames, each with its own graph
  const std::int64_t of_20 = launches_of(20);
  EXPECT_EQ(launches_of(30) - of_20, 10);
}

TEST(Draws, MayBeMoreThanOnePieceOfWorkTakes) {
  expect_the_cpus([](const Scope& s, Output x) {
    for (std::int64_t seed = 1; seed <= 70; ++seed) x = dropout(s, x, 0.01, seed);
    return x;
  });
}

}  // namespace
}  // namespace kolo
