// Trainings in bf16 beside the same in f32.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <kolo/core/kernels/cpu/onednn/native_bf16.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/models/data.h>
#include <kolo/models/models.h>
#include <kolo/models/zoo.h>
#include <kolo/optimizer/rules.h>

namespace kolo::models {
namespace {

constexpr int kSteps = 200;

// Of a model on batches that come again and again, one after the other.
struct Course {
  Graph graph;
  Scope s{graph};
  Output samples, labels, loss;
  std::vector<Feeds> batches;
};

std::vector<double> losses_of(Course& course, Precision precision) {
  const Operation train = AdamOptimizer(0.001f).minimize(course.s, course.loss);
  SessionConfig config;
  config.graph_options.precision = precision;
  Session session(course.graph, config);
  session.run(global_variables_initializer(course.s));
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step)
    losses.push_back(static_cast<double>(
        session.run({course.loss, train}, course.batches[step % course.batches.size()])[0].value<float>()));
  return losses;
}

// Of a stretch of steps: single ones differ by chance.
double mean(const std::vector<double>& losses, int begin, int end) {
  double sum = 0;
  for (int i = begin; i < end; ++i) sum += losses[i];
  return sum / (end - begin);
}

// Random numbers do not depend on the precision: both begin with the same weights.
void expect_like_losses(const std::function<void(Course&)>& build) {
  Course f32, bf16;
  build(f32), build(bf16);
  const auto expected = losses_of(f32, Precision::f32), losses = losses_of(bf16, Precision::bf16);
  EXPECT_NE(losses, expected);
  constexpr int kStretch = 20;
  constexpr double kLearnt = 0.1, kClose = 0.03;  // parts of the first loss
  EXPECT_LT(mean(losses, kSteps - kStretch, kSteps), kLearnt * losses.front());
  for (int begin = 0; begin < kSteps; begin += kStretch)
    EXPECT_NEAR(mean(losses, begin, begin + kStretch), mean(expected, begin, begin + kStretch),
                kClose * expected.front())
        << "from step " << begin;
}

void lenet_on_digits(Course& course) {
  constexpr std::int64_t kBatch = 32, kBatches = 8, kPixels = 28 * 28;
  course.graph.set_seed(1);
  const Dataset digits = generated_digits(kGeneratedDigitsSeed, 0, kBatch * kBatches);
  const Model& model = find_model("lenet");
  course.samples = placeholder(course.s, DType::f32, {kBatch, 1, 28, 28});
  course.labels = placeholder(course.s, DType::i32, {kBatch});
  course.loss = softmax_cross_entropy(course.s, model.build(course.s, course.samples), course.labels);
  for (std::int64_t batch = 0; batch < kBatches; ++batch) {
    Tensor images(DType::f32, {kBatch, 1, 28, 28}), labels(DType::i32, {kBatch});
    for (std::int64_t i = 0; i < kBatch * kPixels; ++i)
      images.data<float>()[i] =
          static_cast<float>(digits.images.data<std::uint8_t>()[batch * kBatch * kPixels + i]) / 255;
    for (std::int64_t i = 0; i < kBatch; ++i)
      labels.data<std::int32_t>()[i] = digits.labels.data<std::uint8_t>()[batch * kBatch + i];
    course.batches.push_back({{course.samples, images}, {course.labels, labels}});
  }
}

// Random images, each with a class of its own choice: to be learnt by heart.
void resnet20_on_noise(Course& course) {
  constexpr std::int64_t kBatch = 16, kBatches = 2, kSide = 16, kElements = kBatch * 3 * kSide * kSide;
  course.graph.set_seed(1);
  course.samples = placeholder(course.s, DType::f32, {kBatch, 3, kSide, kSide});
  course.labels = placeholder(course.s, DType::i32, {kBatch});
  course.loss = softmax_cross_entropy(course.s, resnet20(course.s, course.samples), course.labels);
  std::mt19937 random(7);
  for (std::int64_t batch = 0; batch < kBatches; ++batch) {
    Tensor images(DType::f32, {kBatch, 3, kSide, kSide}), labels(DType::i32, {kBatch});
    for (std::int64_t i = 0; i < kElements; ++i)
      images.data<float>()[i] = static_cast<float>(random() % 1024) / 512 - 1;
    for (std::int64_t i = 0; i < kBatch; ++i)
      labels.data<std::int32_t>()[i] = static_cast<int>(random() % 10);
    course.batches.push_back({{course.samples, images}, {course.labels, labels}});
  }
}

void gpt_on_sequences(Course& course) {
  constexpr std::int64_t kBatch = 4, kPlaces = 32, kVocabulary = 29;
  course.graph.set_seed(1);
  course.samples = placeholder(course.s, DType::i32, {kBatch, kPlaces});
  course.labels = placeholder(course.s, DType::i32, {kBatch * kPlaces});
  course.loss = softmax_cross_entropy(
      course.s,
      gpt(course.s, course.samples, {.vocabulary = kVocabulary, .layers = 2, .width = 64, .heads = 4}),
      course.labels);
  const auto token = [](std::int64_t row, std::int64_t place) {
    return static_cast<std::int32_t>((row * 5 + place * place) % kVocabulary);
  };
  Tensor tokens(DType::i32, {kBatch, kPlaces}), next(DType::i32, {kBatch * kPlaces});
  for (std::int64_t row = 0; row < kBatch; ++row)
    for (std::int64_t i = 0; i < kPlaces; ++i) {
      tokens.data<std::int32_t>()[row * kPlaces + i] = token(row, i);
      next.data<std::int32_t>()[row * kPlaces + i] = token(row, i + 1);
    }
  course.batches.push_back({{course.samples, tokens}, {course.labels, next}});
}

class TrainingInBf16 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kolo::detail::has_native_bf16()) GTEST_SKIP() << "this CPU has no instructions for bf16";
  }
};

TEST_F(TrainingInBf16, OfLenetLearnsAsInF32) { expect_like_losses(lenet_on_digits); }
TEST_F(TrainingInBf16, OfResnet20LearnsAsInF32) { expect_like_losses(resnet20_on_noise); }
TEST_F(TrainingInBf16, OfGptLearnsAsInF32) { expect_like_losses(gpt_on_sequences); }

}  // namespace
}  // namespace kolo::models
