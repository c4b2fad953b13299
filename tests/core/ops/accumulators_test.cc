#include <kolo/core/ops/queues.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/op_checks.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// An accumulator of f32 scalars with every op on it.
class Accumulators : public testing::Test {
 protected:
  explicit Accumulators(AccumulatorOptions options = {})
      : sum_(s_.named("w"), DType::f32, Shape(), std::move(options)) {}

  void apply(float gradient, std::int64_t step) {
    session_.run(apply_, {{gradient_, Tensor::scalar<float>(gradient)}, {step_, Tensor::scalar(step)}});
  }
  float take(Output mean) { return session_.run(mean).value<float>(); }
  std::future<float> take_later(Output mean) {
    return std::async(std::launch::async, [this, mean] { return take(mean); });
  }
  void set_step(std::int64_t step) { session_.run(set_step_, {{step_, Tensor::scalar(step)}}); }
  int accumulated() { return session_.run(accumulated_).value<std::int32_t>(); }
  std::int64_t dropped() { return session_.run(dropped_).value<std::int64_t>(); }

  Graph graph_;
  Scope s_{graph_};
  ConditionalAccumulator sum_;
  Output gradient_ = placeholder(s_, DType::f32, {});
  Output step_ = placeholder(s_, DType::i64, {});
  Operation apply_ = apply_grad(s_, sum_, gradient_, step_);
  Operation set_step_ = set_global_step(s_, sum_, step_);
  Output one_ = take_grad(s_, sum_, 1);
  Output two_ = take_grad(s_, sum_, 2);
  Output accumulated_ = num_accumulated(s_, sum_);
  Output dropped_ = num_dropped(s_, sum_);
  Session session_{graph_};
};

template <typename T>
bool waits(const std::future<T>& run) {
  return run.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout;
}

// Row 30 of the cluster's examples.
TEST_F(Accumulators, GivesTheMeanOfAllAndDropsWhatIsLate) {
  for (const float gradient : {3.0f, 5.0f, 10.0f}) apply(gradient, 0);
  EXPECT_EQ(take(two_), 6);
  apply(100, 0);
  EXPECT_EQ(accumulated(), 0);
  EXPECT_EQ(dropped(), 1);
  apply(7, 1);
  apply(9, 4);
  EXPECT_EQ(take(two_), 8);
  apply(1, 1);
  EXPECT_EQ(accumulated(), 0);  // its step is 2
  apply(1, 2);
  EXPECT_EQ(accumulated(), 1);
  for (const char* op : {"ConditionalAccumulator", "AccumulatorApplyGradient", "AccumulatorTakeGradient",
                         "AccumulatorNumAccumulated", "AccumulatorNumDropped"})
    record_op_check(op, OpCheck::value);
}

// Row 31.
TEST_F(Accumulators, HasAStepThatMayGoBack) {
  set_step(6);
  apply(1, 5);
  apply(1, 6);
  EXPECT_EQ(dropped(), 1);
  EXPECT_EQ(accumulated(), 1);
  testing::internal::CaptureStderr();
  set_step(2);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("accumulator 'w' is set back from 6 to 2"));
  apply(1, 2);
  EXPECT_EQ(accumulated(), 2);
  record_op_check("AccumulatorSetGlobalStep", OpCheck::value);
}

// Row 32.
TEST_F(Accumulators, RefusesToTakeNothing) {
  EXPECT_THAT(
      [&] { take_grad(s_, sum_, 0); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Argument num_required must be positive, but was 0")));
}

TEST(AccumulatorShapes, MustBeThatOfTheGradient) {
  Graph graph;
  Scope s(graph);
  const ConditionalAccumulator sum(s, DType::f32, {2});
  const Output step = constant(s, Tensor::scalar<std::int64_t>(0)), x = placeholder(s, DType::f32);
  EXPECT_THAT([&] { apply_grad(s, sum, constant(s, Tensor(DType::f32, {3})), step); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Shape mismatch: expected [2], got [3]")));
  const Operation apply = apply_grad(s, sum, x, step);
  Session session(graph);
  EXPECT_THAT(
      [&] {
        session.run(apply, {{x, Tensor(DType::f32, {3})}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Shape mismatch: expected [2], got [3]")));
  EXPECT_EQ(session.run(num_accumulated(s, sum)).value<std::int32_t>(), 0);
}

TEST(AccumulatorShapes, FollowFromTheAccumulators) {
  Graph graph;
  Scope s(graph);
  const ConditionalAccumulator sum(s, DType::f64, {2, 3});
  const SparseConditionalAccumulator rows(s, DType::f64, {5, 3});
  const Output step = constant(s, Tensor::scalar<std::int64_t>(0));
  EXPECT_EQ(sum.handle().shape(), Shape());
  EXPECT_EQ(rows.handle().shape(), Shape());
  EXPECT_EQ(take_grad(s, sum, 1).shape(), (Shape{2, 3}));
  EXPECT_EQ(take_grad(s, rows, 1).values.shape(), (Shape{-1, 3}));
  EXPECT_EQ(take_grad(s, rows, 1).indices.shape(), (Shape{-1}));
  EXPECT_EQ(num_accumulated(s, sum).shape(), Shape());
  EXPECT_EQ(num_dropped(s, rows).shape(), Shape());
  const Output vector = constant(s, Tensor(DType::i64, {2}));
  EXPECT_THROW(set_global_step(s, sum, vector), InvalidArgumentError);
  EXPECT_THROW(apply_grad(s, sum, zeros(s, DType::f64, {2, 3}), vector), InvalidArgumentError);
  EXPECT_THROW(apply_grad(s, rows, {zeros(s, DType::f64, {2, 4}), vector, Shape{5, 4}}, step),
               InvalidArgumentError);
  EXPECT_THROW(ConditionalAccumulator(s, DType::f32, {-1}), InvalidArgumentError);
  EXPECT_THROW(ConditionalAccumulator(s, DType::i32, {1}), InvalidArgumentError);
  EXPECT_THROW(SparseConditionalAccumulator(s, DType::f32, Shape()), InvalidArgumentError);
  for (const char* op :
       {"ConditionalAccumulator", "SparseConditionalAccumulator", "AccumulatorApplyGradient",
        "SparseAccumulatorApplyGradient", "AccumulatorTakeGradient", "SparseAccumulatorTakeGradient",
        "AccumulatorSetGlobalStep", "AccumulatorNumAccumulated", "AccumulatorNumDropped"})
    record_op_check(op, OpCheck::shape);
}

TEST_F(Accumulators, TakeWaitsForEnoughGradients) {
  apply(3, 0);
  auto mean = take_later(two_);
  EXPECT_TRUE(waits(mean));
  apply(5, 0);
  EXPECT_EQ(mean.get(), 4);
  EXPECT_EQ(accumulated(), 0);
}

TEST_F(Accumulators, TakesAreServedInTheOrderInWhichTheyCame) {
  auto first = take_later(two_);
  EXPECT_TRUE(waits(first));
  auto second = take_later(one_);
  EXPECT_TRUE(waits(second));
  apply(3, 0);
  EXPECT_TRUE(waits(second));
  apply(5, 0);
  EXPECT_EQ(first.get(), 4);
  apply(9, 1);
  EXPECT_EQ(second.get(), 9);
}

TEST_F(Accumulators, TakeThatRunsOutOfTimeTakesNothing) {
  apply(3, 0);
  EXPECT_THAT([&] { session_.run({two_}, {}, {.timeout_in_ms = 50}); },
              ThrowsMessage<DeadlineExceededError>(HasSubstr("Timed out waiting for notification")));
  EXPECT_EQ(accumulated(), 1);
  apply(5, 0);
  EXPECT_EQ(take(two_), 4);
}

TEST_F(Accumulators, WhoStandsBehindATakeThatEndsIsServed) {
  auto two = std::async(std::launch::async, [&] { session_.run({two_}, {}, {.timeout_in_ms = 300}); });
  EXPECT_TRUE(waits(two));
  auto one = take_later(one_);
  EXPECT_TRUE(waits(one));
  apply(3, 0);
  EXPECT_THROW(two.get(), DeadlineExceededError);
  EXPECT_EQ(one.get(), 3);
}

TEST_F(Accumulators, ForgetTheirGradientsWhenTheyAreReset) {
  const Operation reset = reset_accumulator(s_, sum_);
  apply(3, 0);
  auto mean = take_later(two_);
  EXPECT_TRUE(waits(mean));
  session_.run(reset);
  EXPECT_THAT([&] { mean.get(); }, ThrowsMessage<AbortedError>(HasSubstr("Accumulator 'w' was reset")));
  EXPECT_EQ(accumulated(), 0);
  apply(5, 0);
  EXPECT_EQ(take(one_), 5);
  record_op_check("AccumulatorReset", OpCheck::value);
  record_op_check("AccumulatorReset", OpCheck::shape);
}

TEST_F(Accumulators, RefuseAGradientOfAGenerationThatIsOver) {
  const Output generation = placeholder(s_, DType::i64, Shape());
  const Operation applied =
      apply_grad(s_, sum_, constant(s_, 3.0f), constant(s_, Tensor::scalar<std::int64_t>(0)), generation);
  const Operation reset = reset_accumulator(s_, sum_, generation);
  const auto with = [&](std::int64_t number) { return Feeds{{generation, Tensor::scalar(number)}}; };
  session_.run(applied, with(0));
  session_.run(reset, with(1));
  EXPECT_THAT([&] { session_.run(applied, with(0)); },
              ThrowsMessage<AbortedError>(HasSubstr("Accumulator 'w' was reset")));
  EXPECT_EQ(accumulated(), 0);
  session_.run(applied, with(1));
  EXPECT_EQ(accumulated(), 1);
  const Output two = zeros(s_, DType::i64, {2});
  EXPECT_THROW(reset_accumulator(s_, sum_, two), InvalidArgumentError);
  EXPECT_THROW(apply_grad(s_, sum_, constant(s_, 3.0f), generation, two), InvalidArgumentError);
}

TEST_F(Accumulators, ClosedSessionEndsItsWaits) {
  auto mean = take_later(one_);
  EXPECT_TRUE(waits(mean));
  session_.close();
  EXPECT_THROW(mean.get(), CancelledError);
}

TEST_F(Accumulators, AddEachGradientOnceAmongManyThreads) {
  constexpr int kThreads = 4, kEach = 50;
  std::vector<std::future<void>> applied;
  for (int t = 0; t < kThreads; ++t)
    applied.push_back(std::async(std::launch::async, [this] {
      for (int i = 0; i < kEach; ++i) apply(2, 1000);
    }));
  for (auto& one : applied) one.get();
  EXPECT_EQ(accumulated(), kThreads * kEach);
  EXPECT_EQ(take(one_), 2);
}

class OrderedAccumulators : public Accumulators {
 protected:
  OrderedAccumulators() : Accumulators({.ordered = true}) {}
};

TEST_F(OrderedAccumulators, GiveTheSameMean) {
  for (const float gradient : {3.0f, 5.0f, 10.0f}) apply(gradient, 0);
  EXPECT_EQ(take(two_), 6);
  apply(7, 1);
  EXPECT_EQ(take(one_), 7);
}

TEST(SharedAccumulators, AreOneByTheirNameAndMustBeOfOneKind) {
  Graph graph;
  Scope s(graph);
  const ConditionalAccumulator a(s, DType::f32, {2}, {.shared_name = "w"});
  const ConditionalAccumulator b(s, DType::f32, {2}, {.shared_name = "w"});
  const ConditionalAccumulator other(s, DType::f32, {3}, {.shared_name = "w"});
  const Output step = constant(s, Tensor::scalar<std::int64_t>(0));
  Session session(graph);
  session.run(apply_grad(s, a, zeros(s, DType::f32, {2}), step));
  EXPECT_EQ(session.run(num_accumulated(s, b)).value<std::int32_t>(), 1);
  EXPECT_THAT([&] { session.run(num_accumulated(s, other)); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Shared accumulator 'w' has float [2] but requested was float [3]")));
}

class SparseAccumulators : public testing::Test {
 protected:
  void apply(std::vector<std::int64_t> indices, const std::vector<float>& values) {
    const auto rows = static_cast<std::int64_t>(indices.size());
    session_.run(apply_, {{indices_, Tensor::of<std::int64_t>({rows}, indices)},
                          {values_, Tensor::of<float>({rows, 1}, values)}});
  }
  std::pair<std::vector<std::int64_t>, std::vector<float>> take(const IndexedSlices& mean) {
    const auto taken = session_.run(std::vector<Fetch>{mean.indices, mean.values});
    EXPECT_EQ(taken[1].shape(), (Shape{taken[0].elements(), 1}));
    return {{taken[0].span<std::int64_t>().begin(), taken[0].span<std::int64_t>().end()},
            {taken[1].span<float>().begin(), taken[1].span<float>().end()}};
  }

  Graph graph_;
  Scope s_{graph_};
  SparseConditionalAccumulator sum_{s_.named("rows"), DType::f32, {5, 1}};
  Output indices_ = placeholder(s_, DType::i64, {-1});
  Output values_ = placeholder(s_, DType::f32, {-1, 1});
  Output step_ = constant(s_, Tensor::scalar<std::int64_t>(9));
  Operation apply_ = apply_grad(s_, sum_, {values_, indices_, Shape{5, 1}}, step_);
  IndexedSlices two_ = take_grad(s_, sum_, 2);
  Session session_{graph_};
};

// Row 33.
TEST_F(SparseAccumulators, GiveTheMeanOfEachRowOverTheGradientsThatHaveIt) {
  apply({0, 3}, {2, 4});
  apply({3, 3}, {8, 2});
  const auto [indices, values] = take(two_);
  EXPECT_THAT(indices, ElementsAre(0, 3));
  EXPECT_THAT(values, ElementsAre(2, 7));
  for (const char* op :
       {"SparseConditionalAccumulator", "SparseAccumulatorApplyGradient", "SparseAccumulatorTakeGradient"})
    record_op_check(op, OpCheck::value);
}

TEST_F(SparseAccumulators, BeginAnewAfterATake) {
  apply({4}, {2});
  apply({1}, {4});
  EXPECT_THAT(take(two_).first, ElementsAre(1, 4));
  apply({2}, {6});
  apply({2}, {8});
  const auto [indices, values] = take(two_);
  EXPECT_THAT(indices, ElementsAre(2));
  EXPECT_THAT(values, ElementsAre(7));
}

TEST_F(SparseAccumulators, CountAGradientWithoutRows) {
  apply({}, {});
  apply({1}, {4});
  EXPECT_THAT(take(two_).second, ElementsAre(4));
}

TEST_F(SparseAccumulators, TakeIndicesOf32BitsToo) {
  const Output indices = constant(s_, Tensor::of<std::int32_t>({1}, {4}));
  const Operation apply32 = apply_grad(s_, sum_, {values_, indices, Shape{5, 1}}, step_);
  session_.run(apply32, {{values_, Tensor::of<float>({1, 1}, {3})}});
  apply({4}, {5});
  EXPECT_THAT(take(two_).second, ElementsAre(4));
}

TEST_F(SparseAccumulators, RefuseRowsThatDoNotFit) {
  EXPECT_THAT(
      [&] {
        apply({0, 5}, {1, 1});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Index 5 at offset 1 in indices is out of range")));
  EXPECT_THAT(
      [&] {
        session_.run(apply_, {{indices_, Tensor::of<std::int64_t>({2}, {0, 1})},
                              {values_, Tensor::of<float>({1, 1}, {1})}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Shape mismatch: expected [2,1], got [1,1]")));
  EXPECT_EQ(session_.run(num_accumulated(s_, sum_)).value<std::int32_t>(), 0);
}

}  // namespace
}  // namespace kolo
