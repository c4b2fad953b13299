// Numbers of KERAS.md §12, computed there from Keras' formulas.
#include <kolo/models/keras/losses.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/runtime/session.h>
#include <kolo/models/keras/metrics.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr double kRelative = 2e-5;

// The mean over the samples.
double mean_of_function(const std::function<Output(const Scope& s, Output t, Output p)>& f, const Tensor& t,
                        const Tensor& p) {
  Graph graph;
  Scope s(graph);
  const Output mean = reduce_mean(s, f(s, constant(s, t), constant(s, p)));
  return Session(graph).run(mean).value<float>();
}
double mean_of(const Loss& loss, const Tensor& t, const Tensor& p) {
  return mean_of_function([&](const Scope& s, Output a, Output b) { return loss.values(s, a, b); }, t, p);
}
void expect(const Loss& loss, const Tensor& t, const Tensor& p, double expected) {
  EXPECT_NEAR(mean_of(loss, t, p), expected, kRelative * std::abs(expected)) << loss.name();
}

TEST(Losses, OfRegressionHaveTheirFormulas) {  // row 5
  const Tensor t = floats({2, 2}, {2, 4, 5, 10}), p = floats({2, 2}, {1, 5, 5.5F, 8});
  expect("mse", t, p, 1.5625);
  expect("mae", t, p, 1.125);
  expect("mape", t, p, 26.25);
  expect("msle", t, p, 0.0610796668);
  expect("logcosh", t, p, 0.57816973);
  expect("poisson", t, p, -4.06397701);
  expect("cosine_proximity", t, p, -0.977584358);
}

TEST(Losses, OfMarginsHaveTheirFormulas) {  // row 6
  const Tensor t = floats({2, 2}, {1, -1, -1, 1}), p = floats({2, 2}, {.3F, -2, .5F, .9F});
  expect("hinge", t, p, 0.575);
  expect("squared_hinge", t, p, 0.6875);
}

TEST(Losses, OfClassesHaveTheirFormulas) {  // row 7
  const Tensor t = floats({2, 3}, {0, 1, 0, 1, 0, 0}), p = floats({2, 3}, {.2F, .5F, .3F, .6F, .1F, .3F});
  expect("mse", t, p, 0.106666667);
  expect("categorical_crossentropy", t, p, 0.601986402);
  expect("kld", t, p, 0.601983495);
  expect("categorical_hinge", t, p, 0.75);
}

TEST(Losses, NormalizeAndClip) {  // row 8
  expect("categorical_crossentropy", floats({1, 2}, {0, 1}), floats({1, 2}, {1, 3}), 0.287682072);
  expect("sparse_categorical_crossentropy", Tensor::of<std::int32_t>({1, 1}, {1}), floats({1, 2}, {1, 3}),
         0.693147181);
  expect("categorical_crossentropy", floats({1, 2}, {1, 0}), floats({1, 2}, {0, 1}), 16.1180957);
}

TEST(Losses, OfYesAndNo) {  // row 9
  const Tensor t = floats({1, 4}, {1, 0, 1, 0}), p = floats({1, 4}, {.9F, .5F, .2F, 0});
  expect("binary_crossentropy", t, p, 0.601986427);
  const Metric accuracy("binary_accuracy");
  EXPECT_EQ(mean_of_function([&](const Scope& s, Output a, Output b) { return accuracy.values(s, a, b, {}); },
                             t, p),
            0.75);
}

TEST(Losses, TakeLogits) {
  const Tensor t = floats({1, 2}, {0, 1}), logits = floats({1, 2}, {0, 40});
  EXPECT_NEAR(mean_of(Loss("categorical_crossentropy", {.from_logits = true}), t, logits), 0, 1e-6);
  expect(Loss("binary_crossentropy", {.from_logits = true}), floats({1, 1}, {1}), floats({1, 1}, {-40}), 40);
  expect(Loss("sparse_categorical_crossentropy", {.from_logits = true}),
         Tensor::of<std::int32_t>({1, 1}, {0}), logits, 40);
  EXPECT_THAT([] { Loss("mse", {.from_logits = true}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("takes no logits")));
}

TEST(Losses, AverageOverOtherAxes) {
  EXPECT_EQ(mean_of(Loss("mae"), floats({1, 2, 2}, {0, 0, 0, 0}), floats({1, 2, 2}, {1, 2, 3, 4})), 2.5);
}

TEST(Losses, NameTheNearestOfUnknownNames) {
  EXPECT_THAT([] { Loss("mean_squared_eror"); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("Unknown loss function: mean_squared_eror"),
                                                        HasSubstr("mean_squared_error"))));
  EXPECT_THAT([] { Metric("acuracy"); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("Unknown metric function: acuracy"), HasSubstr("accuracy"))));
}

TEST(Metrics, ChooseByTheLoss) {
  const Tensor p = floats({2, 3}, {.1F, .7F, .2F, .5F, .2F, .3F});
  const auto accuracy = [&](const Loss& loss, const Tensor& t) {
    return mean_of_function(
        [&](const Scope& s, Output a, Output b) { return Metric("accuracy").values(s, a, b, loss); }, t, p);
  };
  EXPECT_EQ(accuracy("categorical_crossentropy", floats({2, 3}, {0, 1, 0, 0, 0, 1})), 0.5);
  EXPECT_EQ(accuracy("sparse_categorical_crossentropy", Tensor::of<std::int32_t>({2, 1}, {1, 2})), 0.5);
  EXPECT_NEAR(accuracy("binary_crossentropy", floats({2, 3}, {0, 1, 0, 1, 0, 0})), 5. / 6, 1e-6);
}

}  // namespace
}  // namespace kolo::keras
