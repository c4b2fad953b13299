// What programs feed is on the GPU before the step, by copies that let the host go on.
// KOLO_FAKE_CUDA_REFUSE=feeds,batches: another copy ends the process.
#include <gtest/gtest.h>

#include <kolo/keras.h>
#include <kolo/kolo.h>

namespace kolo::keras {
namespace {

constexpr std::int64_t kSamples = 96, kInputs = 1024;  // a batch of 32 has 128 KiB

Tensor ramp(DType dtype) {
  Tensor x = Tensor::zeros(DType::f32, {kSamples, kInputs});
  for (std::int64_t i = 0; i < x.elements(); ++i) x.data<float>()[i] = static_cast<float>(i % 97) / 97;
  return dtype == DType::f32 ? x : Tensor::zeros(dtype, x.shape());
}

// Batches of 32, again and again, in memory of its own.
class Ramps : public Source {
 public:
  bool next(Samples& batch) override {
    batch.x = ramp(DType::f32).rows(0, 32);
    batch.y = Tensor::zeros(DType::f32, {32, 1});
    return true;
  }
};

class Feeds : public ::testing::Test {
 protected:
  Feeds() : net_(workspace_, {Dense(1, {.input_shape = {kInputs}})}) {
    net_.compile({.optimizer = SGD({.lr = 0.001}), .loss = "mse"});
  }

  Workspace workspace_;
  Sequential net_;
};

TEST_F(Feeds, OfArraysAreOnTheGpuBeforeTheStep) {
  const History history =
      net_.fit(ramp(DType::f32), Tensor::zeros(DType::f32, {kSamples, 1}), {.epochs = 3, .verbose = 0});
  EXPECT_LT(history["loss"][2], history["loss"][0]);
}

TEST_F(Feeds, OfASourceAreOnTheGpuBeforeTheStep) {
  Ramps source;
  const History history = net_.fit(source, {.epochs = 3, .verbose = 0, .steps_per_epoch = 3});
  EXPECT_LT(history["loss"][2], history["loss"][0]);
}

}  // namespace
}  // namespace kolo::keras
