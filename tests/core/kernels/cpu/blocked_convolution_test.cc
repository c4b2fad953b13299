#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/kernels/cpu/conv/winograd.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/blocked.h>
#include <kolo/core/tensor/tensor.h>

#include "tests/core/kernels/cpu/random_numbers.h"

namespace kolo {
namespace {

using detail::random_numbers;

constexpr std::int64_t kAvx512Block = 16;

struct Case {
  Shape images, weights, results;
  std::int64_t stride = 1;
};

struct Node {
  std::string op;
  std::vector<Tensor> inputs;
  Shape output;
};
// The three passes of a convolution.
std::vector<Node> nodes_of(const Case& c) {
  const Tensor x = random_numbers(c.images, 1), w = random_numbers(c.weights, 2),
               dy = random_numbers(c.results, 3);
  return {{kBlockedConv2dOp, {x, w}, c.results},
          {kBlockedConv2dImagesOp, {w, dy}, c.images},
          {kBlockedConv2dWeightsOp, {x, dy}, c.weights}};
}

// By the kernel of this priority; empty where it declines.
Tensor computed(const Node& node, std::int64_t stride, int priority, int threads) {
  const AttrMap attrs{{"images_block", kAvx512Block},
                      {"results_block", kAvx512Block},
                      {"shape", node.output},
                      {"type", DType::f32},
                      {"strides", std::vector<std::int64_t>{stride, stride}},
                      {"padding", std::string("SAME")},
                      {"groups", std::int64_t{1}}};
  std::vector<KernelInit::Value> inputs;
  std::vector<const Tensor*> tensors;
  for (const Tensor& in : node.inputs) inputs.push_back({in.dtype(), in.shape()}), tensors.push_back(&in);
  for (const KernelEntry& entry : kernels_of(node.op)) {
    if (entry.priority != priority) continue;
    KernelInit init(node.op, attrs, inputs, {{DType::f32, node.output}}, threads);
    const std::unique_ptr<Kernel> kernel = entry.make(init);
    if (!kernel) return {};
    std::vector<Tensor> outputs{Tensor(DType::f32, node.output)};
    // Nothing may be taken from what lies there.
    Tensor scratch(DType::f32, {static_cast<std::int64_t>(init.scratch_bytes() / sizeof(float)) + 1});
    for (float& x : scratch.span<float>()) x = std::nanf("");
    KernelContext context;
    context.inputs = tensors;
    context.outputs = outputs;
    context.scratch_memory = scratch.raw();
    set_intra_op_threads(threads);
    kernel->compute(context);
    return outputs[0];
  }
  return {};
}

double distance(const Tensor& a, const Tensor& b) {
  double difference = 0, size = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    difference += std::pow(static_cast<double>(a.data<float>()[i]) - b.data<float>()[i], 2);
    size += std::pow(b.data<float>()[i], 2);
  }
  return std::sqrt(difference / size);
}

struct OwnConvolutions : testing::Test {
  void SetUp() override {
    if (detail::WinogradConvolution::block() != kAvx512Block) GTEST_SKIP() << "they are for AVX-512";
  }
  void TearDown() override { set_intra_op_threads(1); }
  static void expect_as_onednn(const Case& c, int threads) {
    for (const Node& node : nodes_of(c)) {
      const Tensor own = computed(node, c.stride, 1, threads), onednn = computed(node, c.stride, 0, threads);
      ASSERT_GT(own.elements(), 0) << node.op << " on " << threads << " threads was declined";
      EXPECT_LT(distance(own, onednn), 5e-6) << node.op << " on " << threads << " threads";
    }
  }
  static bool are_taken(const Case& c, int threads) {
    const Node forward = nodes_of(c)[0];
    return computed(forward, c.stride, 1, threads).elements() > 0;
  }
};

const Case kThree{{8, 32, 15, 17}, {48, 32, 3, 3}, {8, 48, 15, 17}},
    kFive{{9, 16, 14, 11}, {32, 16, 5, 5}, {9, 32, 14, 11}},
    kPoint{{8, 48, 9, 8}, {32, 48, 1, 1}, {8, 32, 9, 8}},
    kStridedPoint{{12, 32, 9, 11}, {80, 32, 1, 1}, {12, 80, 5, 6}, 2};

TEST_F(OwnConvolutions, ComputeWhatOneDnnDoes) {
  for (const Case& c : {kThree, kFive, kPoint, kStridedPoint}) expect_as_onednn(c, 1);
}

TEST_F(OwnConvolutions, GiveEachThreadImages) {
  for (const Case& c : {kThree, kPoint, kStridedPoint})
    for (const int threads : {2, 3}) {
      if (c.images.dim(0) % threads == 0 || c.images.dim(0) >= 4 * threads) expect_as_onednn(c, threads);
    }
  expect_as_onednn(kFive, 2);  // 4 and 5 of them
}

TEST_F(OwnConvolutions, LeaveFewImagesOfManyThreadsToOneDnn) {
  EXPECT_FALSE(are_taken({{3, 16, 32, 32}, {16, 16, 3, 3}, {3, 16, 32, 32}}, 2));
  EXPECT_TRUE(are_taken({{4, 16, 32, 32}, {16, 16, 3, 3}, {4, 16, 32, 32}}, 2));
}

TEST_F(OwnConvolutions, LeaveWindowsThatTheyDoNotKnow) {
  EXPECT_FALSE(are_taken({{8, 16, 32, 32}, {16, 16, 3, 3}, {8, 16, 16, 16}, 2}, 1));
  EXPECT_FALSE(are_taken({{8, 16, 32, 32}, {16, 16, 7, 7}, {8, 16, 32, 32}}, 1));
  EXPECT_FALSE(are_taken({{8, 16, 2, 2}, {16, 16, 1, 1}, {8, 16, 2, 2}}, 1)) << "a band has more pixels";
}

}  // namespace
}  // namespace kolo
