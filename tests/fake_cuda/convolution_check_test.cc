// What is measured of cuDNN's engines before they are taken, on engines that are right, wrong in one way
// each, or vary. Their work is that of kolo's kernels, or is spoilt behind it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include <kolo/core/device/cuda/api.h>
#include <kolo/core/device/cuda/check_cuda.h>
#include <kolo/core/kernels/cuda/dnn_check.h>

#include "launches.h"

namespace kolo::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GpuMemory final : public Allocator {
 public:
  std::string name() const override { return "GPU 0"; }
  void* allocate(std::size_t bytes) override {
    void* block = nullptr;
    check_cuda(cuda_api().malloc(&block, bytes), "cudaMalloc");
    return block;
  }
  void deallocate(void* block, std::size_t) noexcept override { cuda_api().free(block); }
};

// "same" padding of 5 × 5 windows on an odd and an even side, by 2: one side has more of it behind.
constexpr Convolution kShape{.batch = 3,
                             .groups = 1,
                             .channels = 4,
                             .filters = 6,
                             .rows = {.size = 11, .window = 5, .stride = 2, .outputs = 6, .pad_before = 2},
                             .cols = {.size = 8, .window = 5, .stride = 2, .outputs = 4, .pad_before = 1}};

class AConvolutionCheck : public ::testing::TestWithParam<ConvolutionPass> {
 protected:
  AConvolutionCheck() { check_cuda(cuda_api().set_device(0), "cudaSetDevice"); }

  std::string fault_of(const ConvolutionCheck::Run& run, bool allow_tf32 = false) {
    ConvolutionCheck check(cuda_api(), memory_, GetParam(), kShape, allow_tf32);
    return check.fault_of(run, 64);
  }
  static void compute(const Convolution& shape, cudaStream_t stream, const DnnPlan::Operands& operands) {
    const auto of = [](const void* memory) { return static_cast<float*>(const_cast<void*>(memory)); };
    float *const images = of(operands.images), *const weights = of(operands.weights),
                 *const results = of(operands.results);
    switch (GetParam()) {
      case ConvolutionPass::results:
        return check_cuda(launch_convolution(stream, {shape, images, weights, results}), "results");
      case ConvolutionPass::images:
        return check_cuda(launch_convolution_images(stream, {shape, weights, results, images}), "images");
      case ConvolutionPass::weights:
        return check_cuda(launch_convolution_weights(stream, {shape, images, results, weights}), "weights");
    }
  }
  // The first element of what the pass makes, times `factor`, once what is queued before is done.
  static void scale(cudaStream_t stream, const DnnPlan::Operands& operands, float factor) {
    const void* const made = GetParam() == ConvolutionPass::results  ? operands.results
                             : GetParam() == ConvolutionPass::images ? operands.images
                                                                     : operands.weights;
    float* const first = fake_cuda::device_write<float>(const_cast<void*>(made), 1);
    check_cuda(fake_cuda::launch("scale", stream, [=] { *first *= factor; }), "scale");
  }

  GpuMemory memory_;
};

TEST_P(AConvolutionCheck, FindsNothingWrongWithWhatIsRight) {
  EXPECT_THAT(fault_of([](cudaStream_t stream, const DnnPlan::Operands& operands) {
                compute(kShape, stream, operands);
              }),
              IsEmpty());
}

TEST_P(AConvolutionCheck, FindsPaddingOnTheWrongSide) {
  Convolution shifted = kShape;
  shifted.cols.pad_before = 2;
  EXPECT_THAT(fault_of([&](cudaStream_t stream, const DnnPlan::Operands& operands) {
                compute(shifted, stream, operands);
              }),
              HasSubstr("is off by"));
}

TEST_P(AConvolutionCheck, FindsWhatIsNotWritten) {
  Convolution fewer = kShape;
  fewer.batch = 2;
  if (GetParam() == ConvolutionPass::weights) --fewer.filters;
  EXPECT_THAT(fault_of([&](cudaStream_t stream, const DnnPlan::Operands& operands) {
                compute(fewer, stream, operands);
              }),
              HasSubstr("unwritten"));
}

TEST_P(AConvolutionCheck, FindsRoundingThatWasNotAllowed) {
  // One element of a few hundred: off by 2e-3 ÷ their root at least.
  const auto rounds = [](cudaStream_t stream, const DnnPlan::Operands& operands) {
    compute(kShape, stream, operands);
    scale(stream, operands, 1.01f);
  };
  EXPECT_THAT(fault_of(rounds), HasSubstr("is off by"));
  EXPECT_THAT(fault_of(rounds, true), IsEmpty());
}

TEST_P(AConvolutionCheck, FindsOtherBitsInASecondRun) {
  int runs = 0;
  EXPECT_THAT(fault_of([&](cudaStream_t stream, const DnnPlan::Operands& operands) {
                compute(kShape, stream, operands);
                scale(stream, operands, ++runs == 1 ? 1 : 1 + 0x1p-23f);
              }),
              HasSubstr("other bits"));
}

INSTANTIATE_TEST_SUITE_P(Of, AConvolutionCheck,
                         ::testing::Values(ConvolutionPass::results, ConvolutionPass::images,
                                           ConvolutionPass::weights),
                         [](const auto& info) {
                           return info.param == ConvolutionPass::results  ? "results"
                                  : info.param == ConvolutionPass::images ? "images"
                                                                          : "weights";
                         });

}  // namespace
}  // namespace kolo::cuda
