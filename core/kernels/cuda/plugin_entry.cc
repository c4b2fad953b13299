// What libkolo sees of the plug-in.
#include <kolo_build_id.h>

#include <cstring>

#include <kolo/core/device/cuda/build_lines.h>
#include <kolo/core/device/cuda/counts.h>
#include <kolo/core/device/cuda/cuda_platform.h>
#include <kolo/core/device/plugin.h>
#include <kolo/core/kernels/cuda/cuda_kernel.h>

extern "C" __attribute__((visibility("default"))) const kolo::PluginContents* kolo_cuda_plugin(
    const char* build_id) {
  using namespace kolo;
  if (std::strcmp(build_id, kBuildId) != 0) return nullptr;
  static const PluginContents contents = {
      .why_no_gpu = [] { return ask_driver(cuda_api()).refusal; },
      .make_platform = [] { return make_cuda_platform(counted_cuda_api()); },
      .kernels = cuda::registered_kernels(),
      .build_lines = [](const std::string& no_driver) { return cuda_build_lines(cuda_api(), no_driver); }};
  return &contents;
}
