#include <kolo/core/device/cuda/check_cuda.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(CheckCuda, ReturnsOnSuccess) { check_cuda(cudaSuccess, "cudaMalloc"); }

TEST(CheckCuda, TellsMemoryThatIsShortFromAllElse) {
  EXPECT_THAT([] { check_cuda(cudaErrorMemoryAllocation, "cudaMalloc"); },
              ThrowsMessage<ResourceExhaustedError>(
                  AllOf(HasSubstr("cudaMalloc: "), HasSubstr("(cudaErrorMemoryAllocation, 2)"))));
  EXPECT_FALSE(is_sticky(cudaErrorMemoryAllocation));
}

TEST(CheckCuda, SaysOfALostContextHowToFindWhatLostIt) {
  for (const cudaError_t code :
       {cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaErrorECCUncorrectable}) {
    EXPECT_TRUE(is_sticky(code));
    EXPECT_THAT([code] { check_cuda(code, "cudaEventSynchronize"); },
                ThrowsMessage<InternalError>(AllOf(HasSubstr("KOLO_CUDA_SYNC=1"), HasSubstr("dmesg"),
                                                   HasSubstr("nothing can be saved"))));
  }
}

TEST(CheckCuda, SaysWhatKeepsAMachinesGpusFromBeingUsed) {
  for (const auto& [code, words] : {std::pair(cudaErrorSystemNotReady, "fabric manager is not running"),
                                    {cudaErrorDevicesUnavailable, "exclusive mode"},
                                    {cudaErrorUnknown, "container"},
                                    {cudaErrorNoDevice, "container"},
                                    {cudaErrorNoDevice, "CUDA_VISIBLE_DEVICES"},
                                    {cudaErrorStubLibrary, "the toolkit's stub"}})
    EXPECT_THAT([code = code] { check_cuda(code, "cudaSetDevice"); },
                ThrowsMessage<FailedPreconditionError>(HasSubstr(words)));
}

TEST(CheckCuda, NamesWhatShowsTheCodeOfABuildWhereThereIsNoneForAGpu) {
  EXPECT_THAT(describe_cuda(cudaErrorNoKernelImageForDevice), HasSubstr("kolorun --check-build"));
}

TEST(DriverTooOld, ComparesMajorVersionsAlone) {
  const int major = CUDART_VERSION / 1000;
  EXPECT_EQ(driver_too_old(1000 * major), "");
  EXPECT_EQ(driver_too_old(1000 * (major + 1)), "");
  EXPECT_THAT(driver_too_old(1000 * (major - 1) + 90),
              AllOf(HasSubstr(cuda_version_text(1000 * (major - 1) + 90)),
                    HasSubstr(cuda_version_text(CUDART_VERSION)), HasSubstr(oldest_driver())));
}

}  // namespace
}  // namespace kolo
