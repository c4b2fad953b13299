// Ops on a GPU that is not there, against the CPU's.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/session.h>

namespace kolo {

inline Tensor random_tensor(const Shape& shape, unsigned seed) {
  std::mt19937 bits(seed);
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<float> numbers(static_cast<std::size_t>(shape.elements()));
  for (float& x : numbers) x = number(bits);
  return Tensor::of<float>(shape, numbers);
}

using Build = std::function<Output(const Scope& s, const Outputs& inputs)>;

/// What `build` makes on the GPU is what it makes on the CPU, of random inputs of these shapes.
inline void expect_cpu_result(const Build& build, const std::vector<Shape>& shapes,
                              double per_element = 1e-6) {
  Graph graph;
  const Scope s(graph);
  Outputs inputs;
  Feeds feeds;
  for (const Shape& shape : shapes) {
    inputs.push_back(placeholder(s, DType::f32, shape));
    feeds.push_back({inputs.back(), random_tensor(shape, static_cast<unsigned>(inputs.size()))});
  }
  const Output on_gpu = build(s.device("/gpu:0"), inputs), on_cpu = build(s.device("/cpu:0"), inputs);
  SessionConfig config;
  config.allow_soft_placement = false;
  Session session(graph, config);
  const auto results = session.run(std::vector<Fetch>{on_gpu, on_cpu}, feeds);
  ASSERT_EQ(results[0].shape(), results[1].shape());
  const auto gpu = results[0].span<float>(), cpu = results[1].span<float>();
  for (std::size_t i = 0; i < cpu.size(); ++i)
    ASSERT_NEAR(gpu[i], cpu[i], per_element * (1 + std::abs(cpu[i]))) << "element " << i;
}

}  // namespace kolo
