// Ops on a GPU that is not there, in the shapes that libraries and kernels are easily wrong about, against
// the CPU.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>
#include <vector>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/pooling.h>
#include <kolo/core/ops/reductions.h>

#include <tests/core/test_ops.h>

#include "on_a_gpu.h"

namespace kolo {
namespace {

TEST(OnAGpu, ProductsOfAllTransposesAndOddSizesAreTheCpus) {
  struct Sizes {
    std::int64_t rows, inner, cols;
  };
  for (const auto [rows, inner, cols] : {Sizes{1, 1, 1}, {3, 5, 7}, {17, 64, 1}, {1, 33, 128}, {31, 1, 9}})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        SCOPED_TRACE(::testing::Message()
                     << rows << " " << inner << " " << cols << " " << transpose_a << transpose_b);
        const Shape a = transpose_a ? Shape{inner, rows} : Shape{rows, inner};
        const Shape b = transpose_b ? Shape{cols, inner} : Shape{inner, cols};
        const MatmulOptions options{.transpose_a = transpose_a, .transpose_b = transpose_b};
        expect_cpu_result([&](const Scope& s, const Outputs& in) { return matmul(s, in[0], in[1], options); },
                          {a, b}, 1e-5);
      }
}

TEST(OnAGpu, BatchesOfProductsAreTheCpus) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      const Shape a = transpose_a ? Shape{4, 5, 3} : Shape{4, 3, 5};
      const Shape b = transpose_b ? Shape{4, 7, 5} : Shape{4, 5, 7};
      const MatmulOptions options{.transpose_a = transpose_a, .transpose_b = transpose_b};
      expect_cpu_result(
          [&](const Scope& s, const Outputs& in) { return batch_matmul(s, in[0], in[1], options); }, {a, b},
          1e-5);
    }
}

TEST(OnAGpu, ConvolutionsWithStridesGroupsAndPaddingAreTheCpus) {
  expect_cpu_result([&](const Scope& s, const Outputs& in) { return conv2d(s, in[0], in[1], {.groups = 2}); },
                    {{2, 4, 5, 6}, {6, 2, 3, 2}}, 1e-5);
  for (const std::int64_t stride : {1, 2, 3})
    for (const Padding padding : {Padding::same, Padding::valid})
      expect_cpu_result(
          [&](const Scope& s, const Outputs& in) {
            return conv2d(s, in[0], in[1], {.strides = {stride, 1}, .padding = padding});
          },
          {{2, 3, 9, 7}, {4, 3, 3, 5}}, 1e-5);
}

TEST(OnAGpu, ReductionsAlongAnyAxesAreTheCpus) {
  for (const std::vector<std::int64_t>& axes : {std::vector<std::int64_t>{0}, {1}, {2}, {0, 2}, {}})
    expect_cpu_result(
        [&](const Scope& s, const Outputs& in) { return reduce_mean(s, in[0], {.axes = axes}); },
        {{5, 3, 4}});
}

TEST(OnAGpu, BroadcastOperandsAreTheCpus) {
  const std::vector<std::vector<Shape>> pairs = {
      {{4, 3}, {3}}, {{4, 3}, {4, 1}}, {{2, 1, 3}, {1, 5, 1}}, {{}, {7}}, {{6}, {6}}};
  for (const std::vector<Shape>& shapes : pairs)
    expect_cpu_result([](const Scope& s, const Outputs& in) { return sub(s, in[0], in[1]); }, shapes, 0);
}

// Asked by the thread that launches the second addition: CUDA keeps what it has answered as an error.
TEST(OnAGpu, AStreamThatIsAskedBeforeItIsDoneGoesOn) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s, DType::f32, {2});
  const Output first = add(s.device("/gpu:0"), x, x);
  const Scope host = s.device("/cpu:0");
  const Output slow = host.add("TestAsync", {constant(host, 1.0f)}, {{"tag", std::int64_t{1}}});
  const Output second = add(s.device("/gpu:0").control_dependencies({Operation(slow.node)}), first, x);
  testing::on_call = [](std::int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1300)); };
  Session session(graph);
  const Tensor sum = session.run(second, {{x, Tensor::of<float>({2}, {1, 2})}});
  EXPECT_EQ(sum.span<float>()[1], 6);
  testing::on_call = [](std::int64_t) {};
}

}  // namespace
}  // namespace kolo
