#include <kolo/models/zoo.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/rules.h>

namespace kolo::models {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t kUsers = 12, kItems = 9;

struct Ratings {
  Ratings()
      : users(placeholder(s, DType::i32, {-1})),
        items(placeholder(s, DType::i32, {-1})),
        targets(placeholder(s, DType::f32, {-1})),
        found(
            matrix_factorization(s, users, items, {.users = kUsers, .items = kItems, .width = 4, .mean = 3})),
        loss(mean_squared_error(s, found, targets)) {
    graph.set_seed(1);
  }
  // Each user's rating of each item: one of a matrix of rank 2 with a bias for each user.
  Feeds all() const {
    constexpr std::int64_t kPairs = kUsers * kItems;
    Tensor u(DType::i32, {kPairs}), i(DType::i32, {kPairs}), r(DType::f32, {kPairs});
    for (std::int64_t k = 0; k < kPairs; ++k) {
      const std::int64_t user = k / kItems, item = k % kItems;
      u.data<std::int32_t>()[k] = static_cast<std::int32_t>(user);
      i.data<std::int32_t>()[k] = static_cast<std::int32_t>(item);
      const double x = static_cast<double>(user), y = static_cast<double>(item);
      r.data<float>()[k] = static_cast<float>(3 + std::sin(x) * std::cos(2 * y) +
                                              0.5 * std::cos(3 * x) * std::sin(y) + 0.1 * x);
    }
    return {{users, u}, {items, i}, {targets, r}};
  }
  Graph graph;
  Scope s{graph};
  Output users, items, targets, found, loss;
};

TEST(MatrixFactorization, HasAVectorAndABiasForEachUserAndItem) {
  const Ratings net;
  std::int64_t parameters = 0;
  for (const Variable& variable : trainable_variables(net.graph)) parameters += variable.shape().elements();
  EXPECT_EQ(parameters, (kUsers + kItems) * 5 + 1);
  EXPECT_EQ(net.found.shape(), (Shape{-1}));
}

TEST(MatrixFactorization, AddsMeanBiasesAndProduct) {
  Ratings net;
  Session session(net.graph);
  session.run(global_variables_initializer(net.s));
  const auto variables = trainable_variables(net.graph);
  const Tensor u = session.run(variables[0].read()), i = session.run(variables[1].read());
  const Feeds feeds{{net.users, Tensor::of<std::int32_t>({2}, {7, 0})},
                    {net.items, Tensor::of<std::int32_t>({2}, {3, 8})}};
  const Tensor found = session.run(net.found, feeds);
  const auto expected = [&](std::int64_t user, std::int64_t item) {
    double sum = 3;
    for (std::int64_t k = 0; k < 4; ++k)
      sum += static_cast<double>(u.data<float>()[user * 5 + k]) * i.data<float>()[item * 5 + k];
    return sum + u.data<float>()[user * 5 + 4] + i.data<float>()[item * 5 + 4];
  };
  EXPECT_NEAR(found.data<float>()[0], expected(7, 3), 1e-5);
  EXPECT_NEAR(found.data<float>()[1], expected(0, 8), 1e-5);
}

TEST(MatrixFactorization, HasGradientsOfTheRowsThatAStepUses) {
  Ratings net;
  const auto variables = trainable_variables(net.graph);
  const Outputs of = gradients(net.s, {net.loss}, {variables[0].read(), variables[1].read()});
  EXPECT_TRUE(indexed_slices(of[0]).has_value());
  EXPECT_TRUE(indexed_slices(of[1]).has_value());
}

TEST(MatrixFactorization, LearnsRatingsOfLowRank) {
  Ratings net;
  AdamOptimizer optimizer(0.03F);
  const Operation train = optimizer.minimize(net.s, net.loss);
  Session session(net.graph);
  session.run(global_variables_initializer(net.s));
  const Feeds all = net.all();
  EXPECT_GT(session.run(net.loss, all).value<float>(), 0.3F);
  for (int step = 0; step < 400; ++step) session.run(train, all);
  EXPECT_LT(session.run(net.loss, all).value<float>(), 0.01F);
}

TEST(MatrixFactorization, RefusesWhatCannotBe) {
  Graph graph;
  Scope s(graph);
  const Output ids = placeholder(s, DType::i32, {-1}), words = placeholder(s, DType::f32, {-1});
  EXPECT_THAT([&] { matrix_factorization(s, ids, ids, {.users = 1, .items = 0}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("0 items")));
  EXPECT_THAT([&] { matrix_factorization(s, ids, words, {.users = 1, .items = 1}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("its items")));
}

}  // namespace
}  // namespace kolo::models
