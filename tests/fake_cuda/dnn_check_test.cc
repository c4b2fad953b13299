// What is measured of cuDNN's engines before they are taken, on engines that are right, wrong in one way
// each, or vary. Their work is that of kolo's kernels, or is spoilt behind it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/device/cuda/api.h>
#include <kolo/core/device/cuda/check_cuda.h>
#include <kolo/core/kernels/cuda/dnn_check.h>

#include "launches.h"

namespace kolo::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// As a session's: what is given back waits for nothing, and may be somebody else's at once.
class GpuMemory final : public Allocator {
 public:
  ~GpuMemory() override {
    for (void* const block : given_back_) cuda_api().free(block);
  }
  std::string name() const override { return "GPU 0"; }
  void* allocate(std::size_t bytes) override {
    void* block = nullptr;
    check_cuda(cuda_api().malloc(&block, std::max<std::size_t>(bytes, 1)), "cudaMalloc");
    return block;
  }
  void deallocate(void* block, std::size_t) noexcept override {
    EXPECT_EQ(running, 0) << "memory is given back under what uses it";
    given_back_.push_back(block);
  }

  int running = 0;  // pieces of work that a test has queued

 private:
  std::vector<void*> given_back_;
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
    return check(allow_tf32).fault_of(run, 64);
  }
  ConvolutionCheck check(bool allow_tf32 = false,
                         std::int64_t most_products = ConvolutionCheck::kMostProducts) {
    return ConvolutionCheck(cuda_api(), memory_, GetParam(), kShape, allow_tf32, most_products);
  }
  static void compute(const Convolution& shape, cudaStream_t stream, const DnnPlan::Operands& operands,
                      std::int64_t image = 0) {
    const auto of = [image](const void* memory, std::int64_t elements) {
      return static_cast<float*>(const_cast<void*>(memory)) + image * elements;
    };
    const std::int64_t pixels =
                           std::int64_t{shape.rows.size} * shape.cols.size * shape.groups * shape.channels,
                       results = std::int64_t{shape.rows.outputs} * shape.cols.outputs * shape.filters;
    convolve_directly(stream, GetParam(), shape, of(operands.images, pixels), of(operands.weights, 0),
                      of(operands.results, results));
  }
  // The first element of what the pass makes, times `factor`, once what is queued before is done.
  static void scale(cudaStream_t stream, const DnnPlan::Operands& operands, float factor) {
    float* const first = fake_cuda::device_write<float>(const_cast<void*>(made(operands)), 1);
    check_cuda(fake_cuda::launch("scale", stream, [=] { *first *= factor; }), "scale");
  }

  static const void* made(const DnnPlan::Operands& operands) {
    return GetParam() == ConvolutionPass::results  ? operands.results
           : GetParam() == ConvolutionPass::images ? operands.images
                                                   : operands.weights;
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
  // One element of 200 to 1,100 is off by 1 %: by 3e-4 to 7e-4 of all.
  const auto rounds = [](cudaStream_t stream, const DnnPlan::Operands& operands) {
    compute(kShape, stream, operands);
    scale(stream, operands, 1.01f);
  };
  EXPECT_THAT(fault_of(rounds), HasSubstr("is off by"));
  EXPECT_THAT(fault_of(rounds, true), IsEmpty());
}

TEST_P(AConvolutionCheck, FindsOtherBitsInOneOfAFewRuns) {
  int runs = 0;
  EXPECT_THAT(fault_of([&](cudaStream_t stream, const DnnPlan::Operands& operands) {
                compute(kShape, stream, operands);
                scale(stream, operands, ++runs == 4 ? 1 + 0x1p-23f : 1);
              }),
              HasSubstr("other bits"));
}

TEST_P(AConvolutionCheck, FindsWhatLeansOnAClearedWorkspace) {
  EXPECT_THAT(fault_of([](cudaStream_t stream, const DnnPlan::Operands& operands) {
                compute(kShape, stream, operands);
                const float* const factor = fake_cuda::device_read<float>(operands.workspace, 1);
                float* const first = fake_cuda::device_write<float>(const_cast<void*>(made(operands)), 1);
                check_cuda(fake_cuda::launch("add", stream, [=] { *first += *factor; }), "add");
              }),
              HasSubstr("unwritten"));
}

// Products enough for one image: the last.
TEST_P(AConvolutionCheck, ComputesThoseOfALargeBatchThatItHasTimeFor) {
  const auto is_right = [](cudaStream_t stream, const DnnPlan::Operands& operands) {
    compute(kShape, stream, operands);
  };
  EXPECT_THAT(check(false, 1).fault_of(is_right, 0), IsEmpty());
  // What is wrong with the last image shows by its numbers, of the others what is not written.
  EXPECT_THAT(check(false, 1).fault_of(
                  [&](cudaStream_t stream, const DnnPlan::Operands& operands) {
                    compute(kShape, stream, operands);
                    Convolution last = kShape;
                    last.batch = 1;
                    last.cols.pad_before = 2;
                    compute(last, stream, operands, 2);
                  },
                  0),
              HasSubstr("is off by"));
  Convolution second = kShape;
  second.batch = 2;
  if (GetParam() == ConvolutionPass::weights) return;
  EXPECT_THAT(check(false, 1).fault_of(
                  [&](cudaStream_t stream, const DnnPlan::Operands& operands) {
                    compute(second, stream, operands, 1);
                  },
                  0),
              HasSubstr("unwritten"));
}

TEST_P(AConvolutionCheck, WaitsForWhatAnEngineHasQueuedBeforeItFails) {
  ConvolutionCheck check = this->check();
  EXPECT_THROW(check.fault_of(
                   [&](cudaStream_t stream, const DnnPlan::Operands& operands) {
                     compute(kShape, stream, operands);
                     ++memory_.running;
                     check_cuda(fake_cuda::launch("end", stream, [this] { --memory_.running; }), "end");
                     throw InternalError("not supported");
                   },
                   64),
               InternalError);
  EXPECT_EQ(memory_.running, 0);
  EXPECT_THAT(check.fault_of([](cudaStream_t stream,
                                const DnnPlan::Operands& operands) { compute(kShape, stream, operands); },
                             1024),
              IsEmpty());
}

TEST_P(AConvolutionCheck, KnowsGroups) {
  Convolution grouped = kShape;
  grouped.groups = 2;
  ConvolutionCheck check(cuda_api(), memory_, GetParam(), grouped, false, 1);
  EXPECT_THAT(check.fault_of([&](cudaStream_t stream,
                                 const DnnPlan::Operands& operands) { compute(grouped, stream, operands); },
                             0),
              IsEmpty());
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
