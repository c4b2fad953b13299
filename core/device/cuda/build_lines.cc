#include <kolo/core/device/cuda/build_lines.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <kolo/core/device/cuda/check_cuda.h>
#include <kolo/core/device/cuda/cuda_platform.h>
#include <kolo/core/device/cuda/libraries.h>

namespace kolo {
namespace {

std::string gpu_text(const CudaApi& api, int gpu) {
  cudaDeviceProp found;
  const cudaError_t code = api.get_device_properties(&found, gpu);
  if (code != cudaSuccess) return describe_cuda(code);
  return fmt::format("{}, sm_{}{}, {:.1f} GiB", found.name, found.major, found.minor,
                     static_cast<double>(found.totalGlobalMem) / (std::int64_t{1} << 30));
}

// "1 GPU: NVIDIA H200, sm_90, 139.8 GiB"; equal ones once, in the order of their numbers.
std::string gpus_text(const CudaApi& api, int gpus) {
  std::vector<std::pair<std::string, int>> kinds;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const std::string text = gpu_text(api, gpu);
    const auto same =
        std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == text; });
    if (same == kinds.end()) kinds.push_back({text, 1});
    else ++same->second;
  }
  std::string all = fmt::format("{} GPU{}: ", gpus, gpus == 1 ? "" : "s");
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (i > 0) all += "; ";
    if (kinds.size() > 1) all += fmt::format("{} × ", kinds[i].second);
    all += kinds[i].first;
  }
  return all;
}

std::string driver_text(const CudaApi& api) {
  const DriverState driver = ask_driver(api);
  const std::string version = driver_module_version();
  if (!driver.refusal.empty())
    return fmt::format("none ({}){}", driver.refusal,
                       version.empty() ? "" : fmt::format(", driver {}", version));
  return fmt::format("driver {}{}(CUDA {}), {}", version, version.empty() ? "" : " ",
                     cuda_version_text(driver.cuda), gpus_text(api, driver.gpus));
}

std::string library_text(const LibraryKind& kind) {
  const FoundLibrary found = find_library(kind, CUDART_VERSION / 1000);
  std::string text = "none";
  if (found.library != nullptr) {
    text = fmt::format("{} {}", found.path, found.version);
    if (found.cuda_major != 0) text += fmt::format(" (CUDA {})", found.cuda_major);
  }
  const char* separator = "; tried ";
  for (const std::string& tried : found.tried) {
    // Where one is found, only those are news that are there and do not serve.
    if (found.library != nullptr && tried.find("No such file") != std::string::npos) continue;
    text += separator + tried;
    separator = ", ";
  }
  return text;
}

BuildLine library_line(const LibraryKind& kind, const char* built_with, const std::string& no_driver) {
  const std::string built = *built_with == '\0' ? "built without" : fmt::format("built with {}", built_with);
  return {kind.name, fmt::format("{}; here: {}", built,
                                 no_driver.empty() ? library_text(kind) : "not looked for (no driver)")};
}

}  // namespace

std::vector<BuildLine> cuda_build_lines(const CudaApi& api, const std::string& no_driver) {
  const std::string here = no_driver.empty() ? driver_text(api) : fmt::format("none ({})", no_driver);
  return {{"CUDA", fmt::format("built with {} for {}, driver ≥ {}; here: {}",
                               cuda_version_text(CUDART_VERSION), KOLO_CUDA_CODE, oldest_driver(), here)},
          library_line(cudnn_kind(), KOLO_CUDNN_VERSION, no_driver),
          library_line(nccl_kind(), KOLO_NCCL_VERSION, no_driver),
          library_line(cublas_lt_kind(CUDART_VERSION / 1000), KOLO_CUBLAS_LT_VERSION, no_driver)};
}

}  // namespace kolo
