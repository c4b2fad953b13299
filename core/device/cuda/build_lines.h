// What kolorun --check-build says of CUDA.
#pragma once

#include <string>
#include <vector>

#include <kolo/core/device/cuda/api.h>
#include <kolo/core/device/plugin.h>

namespace kolo {

/// "CUDA", "cuDNN", "NCCL", "cuBLASLt": what the plug-in was built with, and what is here. no_driver: why
/// there is none to be asked; "": one can be, and the libraries are opened. Makes no context.
std::vector<BuildLine> cuda_build_lines(const CudaApi& api, const std::string& no_driver);

}  // namespace kolo
