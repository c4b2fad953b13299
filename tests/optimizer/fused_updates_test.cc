// The updates of several variables as one kernel call give the bits of one call for each.
#include <gtest/gtest.h>

#include <cmath>

#include <kolo/optimizer/registry.h>

#include "tests/optimizer/small_training.h"

namespace kolo {
namespace {

// No whole vectors of any width, one element, and enough for several threads.
const std::vector<std::int64_t> kSizes = {1, 17, 40000, 3, 1000};

std::vector<float> numbers(std::int64_t count, int salt) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(std::sin(static_cast<float>(i % 1009) + static_cast<float>(salt)));
  return values;
}

// All variables `which` after three steps of one optimizer.
std::vector<float> trained(const std::string& name, const std::vector<int>& which, int threads) {
  const auto optimizer = make_optimizer(name, {.learning_rate = 0.03});
  Graph graph;
  Scope s(graph);
  std::vector<GradientPair> pairs;
  for (const int i : which)
    pairs.push_back({constant(s, tensor_of(numbers(kSizes[i], i + 10))),
                     Variable(s.named("v"), constant(s, tensor_of(numbers(kSizes[i], i))))});
  const Operation step = optimizer->apply_gradients(s, pairs);
  SessionConfig config;
  config.intra_op_parallelism_threads = threads;
  Session session(graph, config);
  session.run(global_variables_initializer(s));
  for (int i = 0; i < 3; ++i) session.run(step);
  std::vector<float> values;
  for (const GradientPair& pair : pairs)
    for (const float value : elements<float>(session.run(pair.variable.read()))) values.push_back(value);
  return values;
}

class FusedUpdates : public ::testing::TestWithParam<std::string> {};

TEST_P(FusedUpdates, GiveTheBitsOfSeparateOnes) {
  std::vector<float> separate;
  std::vector<int> all;
  for (int i = 0; i < static_cast<int>(kSizes.size()); ++i) {
    all.push_back(i);
    for (const float value : trained(GetParam(), {i}, 1)) separate.push_back(value);
  }
  EXPECT_EQ(trained(GetParam(), all, 1), separate);
  EXPECT_EQ(trained(GetParam(), all, 3), separate);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, FusedUpdates, ::testing::ValuesIn(registered_optimizers()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace kolo
