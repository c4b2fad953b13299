// CUDA's codes as kolo's errors. Nobody else reads them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include <kolo/core/device/cuda/api.h>

namespace kolo {

/// Returns where `code` is cudaSuccess. Throws ResourceExhaustedError where memory is short, which a caller
/// may live with; FailedPreconditionError where the machine's driver or its GPUs cannot be used, as another
/// session of the process will find; InternalError otherwise. call: "cudaMalloc", for the text.
void check_cuda(cudaError_t code, const char* call);

/// "out of memory (cudaErrorMemoryAllocation, 2)", with what to do about it where that is known.
std::string describe_cuda(cudaError_t code);

/// Whether the context is lost with it: every later call of the process fails, and nothing may be saved.
bool is_sticky(cudaError_t code);

/// 13000 is "13.0".
std::string cuda_version_text(int version);
/// "580.95.05", as the kernel's module of the driver tells it; "" where it does not.
std::string driver_module_version();
/// What times on a GPU depend on: "NVIDIA H200, driver 580.95.05 (CUDA 13.0), cuDNN 9.14.0". version: as
/// NVIDIA's libraries count, 91400. Throws as check_cuda.
std::string machine_with_library(const CudaApi& api, int gpu, const char* library, std::size_t version);
/// Why a driver for CUDA `driver` (as 12020) does not serve this build; "" where it does, and for 0, which is
/// what CUDA says where it has no driver.
std::string driver_too_old(int driver);
/// The oldest driver that serves this build: "580".
std::string oldest_driver();

}  // namespace kolo
