// The model of ratings over several ranks, whose gradients travel as rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <kolo/collectives/graph/group_ops.h>
#include <kolo/collectives/job/init.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/models/zoo.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>

namespace kolo::models {
namespace {

using testing::FloatNear;
using testing::Pointwise;

constexpr std::int64_t kUsers = 40, kItems = 30, kWidth = 3, kPairs = 12, kSteps = 5;

// Pairs first, first + stride, … of each step: users and items below 20, each several times.
Feeds pairs(const Outputs& inputs, int step, std::int64_t first, std::int64_t stride) {
  std::vector<std::int32_t> users, items;
  std::vector<float> ratings;
  for (std::int64_t k = first; k < kPairs; k += stride) {
    users.push_back(static_cast<std::int32_t>((3 * k + step) % 20));
    items.push_back(static_cast<std::int32_t>((k * k + 2 * step) % 20));
    ratings.push_back(static_cast<float>((5 * k + step) % 7));
  }
  const auto count = static_cast<std::int64_t>(users.size());
  return {{inputs[0], Tensor::of<std::int32_t>({count}, std::span<const std::int32_t>(users))},
          {inputs[1], Tensor::of<std::int32_t>({count}, std::span<const std::int32_t>(items))},
          {inputs[2], Tensor::of<float>({count}, std::span<const float>(ratings))}};
}

struct Tables {
  Tensor users, items;  // after the last step
  Tensor first_users;   // before the first
};

Tables trained(std::unique_ptr<Optimizer> optimizer, std::int64_t first, std::int64_t stride) {
  Graph graph;
  graph.set_seed(5);
  Scope s(graph);
  const Outputs inputs = {placeholder(s, DType::i32, {-1}), placeholder(s, DType::i32, {-1}),
                          placeholder(s, DType::f32, {-1})};
  const Output found = matrix_factorization(s, inputs[0], inputs[1],
                                            {.users = kUsers, .items = kItems, .width = kWidth, .mean = 3});
  const Operation step = optimizer->minimize(s, mean_squared_error(s, found, inputs[2]));
  const auto variables = trainable_variables(graph);
  Session session(graph);
  session.run(global_variables_initializer(s));
  Tables tables;
  tables.first_users = session.run(variables[0].read());
  for (int i = 0; i < kSteps; ++i) session.run(step, pairs(inputs, i, first, stride));
  tables.users = session.run(variables[0].read());
  tables.items = session.run(variables[1].read());
  return tables;
}

TEST(MatrixFactorization, LearnsOnSeveralRanksWhatOneLearnsOfAllPairs) {
  const Tables one = trained(std::make_unique<GradientDescentOptimizer>(0.1F), 0, 1);
  const Tables several =
      trained(std::make_unique<DistributedOptimizer>(std::make_unique<GradientDescentOptimizer>(0.1F)),
              rank(), size());
  EXPECT_THAT(several.users.span<float>(), Pointwise(FloatNear(1e-5F), one.users.span<float>()));
  EXPECT_THAT(several.items.span<float>(), Pointwise(FloatNear(1e-5F), one.items.span<float>()));
}

TEST(MatrixFactorization, LeavesTheRowsThatNoRankUses) {
  const Tables tables =
      trained(std::make_unique<DistributedOptimizer>(std::make_unique<GradientDescentOptimizer>(0.1F)),
              rank(), size());
  const auto before = tables.first_users.span<float>().subspan(20 * (kWidth + 1)),
             after = tables.users.span<float>().subspan(20 * (kWidth + 1));
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
}

}  // namespace
}  // namespace kolo::models
