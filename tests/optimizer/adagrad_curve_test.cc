// The loss of the MLP under AdagradOptimizer falls in step with PyTorch's: adagrad_table.json, and the script
// that made it, scripts/make_adagrad_table.py, which says what is trained and from which weights.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/models/data.h>
#include <kolo/models/zoo.h>
#include <kolo/optimizer/rules.h>

#include <nlohmann/json.hpp>

#include "tests/support/paths.h"

namespace kolo {
namespace {

constexpr std::int64_t kSteps = 50, kBatch = 128, kPixels = 784;
constexpr double kRelativeTolerance = 0.01;

std::filesystem::path mnist_folder() {
  const char* named = std::getenv("KOLO_DATA_DIR");
  const std::filesystem::path data = named != nullptr ? named : source_path("../shared/data");
  return data / "mnist";
}

// The script's formula.
float first_weight(std::uint64_t tensor, std::uint64_t element, float bound) {
  std::uint64_t z = ((tensor << 32) + element + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  const auto unit =
      static_cast<float>(static_cast<std::int64_t>(z >> 40) - (1 << 23)) / static_cast<float>(1 << 23);
  return unit * bound;
}

Tensor first_value(std::uint64_t tensor, const Shape& shape) {
  Tensor value = Tensor::zeros(DType::f32, shape);
  if (shape.rank() == 1) return value;
  const auto bound = static_cast<float>(std::sqrt(6.0 / static_cast<double>(shape.dim(0) + shape.dim(1))));
  for (std::int64_t i = 0; i < value.elements(); ++i) value.data<float>()[i] = first_weight(tensor, i, bound);
  return value;
}

Tensor pixels(const Tensor& images, std::int64_t step) {
  Tensor x(DType::f32, {kBatch, kPixels});
  const std::uint8_t* first = images.data<std::uint8_t>() + step * kBatch * kPixels;
  for (std::int64_t i = 0; i < x.elements(); ++i) x.data<float>()[i] = static_cast<float>(first[i]) / 255;
  return x;
}

Tensor classes(const Tensor& labels, std::int64_t step) {
  Tensor y(DType::i32, {kBatch});
  for (std::int64_t i = 0; i < kBatch; ++i)
    y.data<std::int32_t>()[i] = labels.data<std::uint8_t>()[step * kBatch + i];
  return y;
}

std::uint32_t crc32_of_first(const Tensor& images) {
  return static_cast<std::uint32_t>(
      crc32(0, images.data<std::uint8_t>(), static_cast<uInt>(kSteps * kBatch * kPixels)));
}

std::vector<double> losses_of(const models::Dataset& digits) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {-1, kPixels}), y = placeholder(s, DType::i32, {-1});
  const Output loss = reduce_mean(s, sparse_softmax_cross_entropy_with_logits(s, models::mlp(s, x), y));
  const std::vector<Variable> variables = trainable_variables(graph);
  AdagradOptimizer optimizer(0.01f);
  const Operation step = optimizer.minimize(s, loss);
  Session session(graph);
  session.run(global_variables_initializer(s));
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Output value = placeholder(s, DType::f32, variables[i].shape());
    session.run(Operation(assign(s, variables[i], value)), {{value, first_value(i, variables[i].shape())}});
  }
  std::vector<double> losses;
  for (std::int64_t i = 0; i < kSteps; ++i) {
    const Feeds feeds = {{x, pixels(digits.images, i)}, {y, classes(digits.labels, i)}};
    losses.push_back(session.run({Fetch(loss), Fetch(step)}, feeds)[0].value<float>());
  }
  return losses;
}

TEST(Adagrad, FallsInStepWithPyTorchOnRealDigits) {
  if (!std::filesystem::exists(mnist_folder())) GTEST_SKIP() << "no digits in " << mnist_folder();
  const models::Dataset digits = models::load_mnist(mnist_folder(), models::Split::train);
  std::ifstream file(source_path("tests/optimizer/adagrad_table.json"));
  const nlohmann::json table = nlohmann::json::parse(file);
  if (digits.size() < kSteps * kBatch ||
      crc32_of_first(digits.images) != table.at("pixels_crc32").get<std::uint32_t>())
    GTEST_SKIP() << mnist_folder() << " holds other digits than those of the table";

  const auto expected = table.at("losses").get<std::vector<double>>();
  ASSERT_EQ(expected.size(), static_cast<std::size_t>(kSteps));
  const std::vector<double> found = losses_of(digits);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], kRelativeTolerance * expected[i]) << "step " << i;
}

}  // namespace
}  // namespace kolo
