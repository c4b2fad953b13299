// A plug-in without CUDA: one GPU, which is virtual, and a kernel. FAKE_BUILD_ID is of the build that it is
// for.
#include <kolo_build_id.h>

#include <cstring>

#include <kolo/core/device/gpu_platform.h>
#include <kolo/core/device/plugin.h>
#include <kolo/core/kernels/kernel.h>

extern "C" const kolo::PluginContents* kolo_cuda_plugin(const char* build_id) {
  using namespace kolo;
  if (std::strcmp(build_id, FAKE_BUILD_ID) != 0) return nullptr;
  static const PluginContents contents = {
      .why_no_gpu = [] { return std::string(); },
      .make_platform = [] { return make_virtual_gpu_platform(std::vector<VirtualGpu>(1)); },
      .kernels = {[] { RegisterKernel("Add", "GPU", {DType::f32}, [](KernelContext&) {}); }},
      .build_lines = [](const std::string& no_driver) -> std::vector<BuildLine> {
        return {{"CUDA", "of a test; " + (no_driver.empty() ? "driver" : no_driver)}};
      }};
  return &contents;
}
