// The plug-in that brings real GPUs, libkolo_cuda.so: libkolo knows nothing of CUDA and opens it at run time,
// where there is a driver.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kolo {

class GpuPlatform;

/// `name: text` as kolorun --check-build prints it.
struct BuildLine {
  std::string name, text;
};

/// What a plug-in hands over. It registers nothing by itself: one of another build is refused before anything
/// of it stands in kolo's tables.
struct PluginContents {
  /// Asks the driver, which must have been found. Why no GPU can be used here, in half a sentence; "" where
  /// one can.
  std::function<std::string()> why_no_gpu;
  /// Called once, where why_no_gpu() has said "".
  std::function<std::shared_ptr<GpuPlatform>()> make_platform;
  /// Each registers one kernel, or a library of collectives; kernels_of calls them before it answers for the
  /// first time.
  std::vector<std::function<void()>> kernels;
  /// What it was built with, and what of it is here. no_driver: why no driver can be asked, "" where one can.
  std::function<std::vector<BuildLine>(const std::string& no_driver)> build_lines;
};

/// The only function that a plug-in exports, `extern "C"` and of this name: its contents, or nullptr if
/// `build_id` is not that of its own build.
using PluginEntry = const PluginContents*(const char* build_id);
inline constexpr char kPluginEntry[] = "kolo_cuda_plugin";

/// Differs where the headers of core, the compiler or the kind of build do: classes of one build are then no
/// classes of the other.
const char* build_id();

/// What the plug-in brings; nullptr where KOLO_VIRTUAL_GPUS asks for others, where there is no driver
/// (nothing of CUDA is then opened) and where it is missing or refused. Opened by the first call, once for
/// the process. Looked for: the file KOLO_CUDA_PLUGIN, or libkolo_cuda.so beside libkolo, then in the folder
/// kolo/ there. Any thread. Cost: below 1 ms without a driver.
const PluginContents* gpu_plugin();

/// Its GPUs; nullptr where none can be used. The first call says why, in one line of the log.
/// Any thread.
std::shared_ptr<GpuPlatform> plugin_platform();

/// Those of the plug-in, which is opened whether there is a driver or not, and one on the plug-in itself.
std::vector<BuildLine> plugin_build_lines();

}  // namespace kolo
