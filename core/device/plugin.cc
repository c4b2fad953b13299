#include <kolo/core/device/plugin.h>

#include <dlfcn.h>

#include <fmt/format.h>
#include <kolo_build_id.h>
#include <unistd.h>

#include <filesystem>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>

namespace kolo {
namespace {

constexpr char kPluginFile[] = "libkolo_cuda.so";
constexpr char kDriver[] = "libcuda.so.1";
// Where container toolkits and distributions put the driver without telling the loader's cache.
constexpr const char* kDriverFolders[] = {"/usr/lib/x86_64-linux-gnu",
                                          "/usr/lib/aarch64-linux-gnu",
                                          "/usr/lib64",
                                          "/usr/local/nvidia/lib64",
                                          "/usr/lib/x86_64-linux-gnu/nvidia/current",
                                          "/usr/lib/wsl/lib",
                                          "/run/opengl-driver/lib"};

struct Opened {
  const PluginContents* contents = nullptr;
  std::string refusal = {};  // where there are none: why, in half a sentence
  std::string path = {};     // of the contents
  bool driver = true;
};

// "" if the driver is open, else why not. It stays open: whoever asks for it by its name alone, as CUDA's
// runtime does, then gets the one that was found by its path.
std::string open_driver() {
  if (dlopen(kDriver, RTLD_LAZY | RTLD_LOCAL) != nullptr) return "";
  const std::string error = dlerror();
  for (const char* folder : kDriverFolders)
    if (dlopen(fmt::format("{}/{}", folder, kDriver).c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr) return "";
  const bool missing = error.starts_with(kDriver) && error.find("No such file") != std::string::npos;
  return missing ? fmt::format("{} not found", kDriver)
                 : fmt::format("{} cannot be loaded: {}", kDriver, error);
}

std::string folder_of_libkolo() {
  Dl_info found;
  if (dladdr(reinterpret_cast<const void*>(&gpu_plugin), &found) == 0 || found.dli_fname == nullptr)
    return ".";
  // A run path of $ORIGIN/../lib leaves "bin/../lib" in the name.
  const auto folder = std::filesystem::path(found.dli_fname).lexically_normal().parent_path();
  return folder.empty() ? "." : folder.string();
}

Opened refused(void* plugin, std::string why) {
  if (plugin != nullptr) dlclose(plugin);
  return {.refusal = std::move(why)};
}

Opened open_file(const std::string& path) {
  void* const plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr)
    return refused(nullptr, fmt::format("{} cannot be loaded: {}", kPluginFile, dlerror()));
  auto* const entry = reinterpret_cast<PluginEntry*>(dlsym(plugin, kPluginEntry));
  if (entry == nullptr) return refused(plugin, fmt::format("{} has no function {}", path, kPluginEntry));
  const PluginContents* const contents = entry(build_id());
  if (contents == nullptr)
    return refused(plugin,
                   fmt::format("{} is of another build than libkolo; both must come from one build", path));
  return {.contents = contents, .path = path};
}

Opened open_plugin_file() {
  if (const auto path = env_string("KOLO_CUDA_PLUGIN")) return open_file(*path);
  const std::string folder = folder_of_libkolo();
  for (const char* below : {"", "kolo/"}) {
    const std::string path = fmt::format("{}/{}{}", folder, below, kPluginFile);
    if (access(path.c_str(), F_OK) == 0) return open_file(path);
  }
  return refused(nullptr, fmt::format("{} is neither in {} nor in {}/kolo", kPluginFile, folder, folder));
}

const Opened& opened() {
  static const Opened once = []() -> Opened {
    if (env_string("KOLO_VIRTUAL_GPUS").value_or("0") != "0")
      return {.refusal = "KOLO_VIRTUAL_GPUS is set", .driver = false};
    if (std::string why = open_driver(); !why.empty()) return {.refusal = std::move(why), .driver = false};
    return open_plugin_file();
  }();
  return once;
}

// A machine without driver is as it should be, and all of a job mostly are alike. What keeps a driver from
// being used is told by every host.
void tell_no_gpu(const std::string& why, bool driver) {
  if (!driver && process().rank == 0) log_info("CUDA: none ({})", why);
  if (driver && process().local_rank == 0) log_warning("CUDA: none ({}); the CPU computes", why);
}

}  // namespace

const char* build_id() { return kBuildId; }

const PluginContents* gpu_plugin() { return opened().contents; }

const PluginContents& installed_plugin() {
  static const Opened installed = gpu_plugin() != nullptr ? opened() : open_plugin_file();
  if (installed.contents == nullptr) throw FailedPreconditionError("{}", installed.refusal);
  return *installed.contents;
}

std::shared_ptr<GpuPlatform> plugin_platform() {
  static const std::shared_ptr<GpuPlatform> platform = []() -> std::shared_ptr<GpuPlatform> {
    const Opened& plugin = opened();
    std::string why = plugin.contents != nullptr ? plugin.contents->why_no_gpu() : plugin.refusal;
    // A GPU that computes nothing would take the nodes that passes expand, and --device gpu would mean the
    // CPU.
    if (why.empty() && plugin.contents->kernels.empty()) why = "the plug-in brings no kernels";
    if (why.empty()) return plugin.contents->make_platform();
    tell_no_gpu(why, plugin.driver);
    return nullptr;
  }();
  return platform;
}

std::vector<BuildLine> plugin_build_lines() {
  const std::string no_driver = open_driver();
  const Opened plugin = open_plugin_file();
  std::vector<BuildLine> lines;
  if (plugin.contents != nullptr) lines = plugin.contents->build_lines(no_driver);
  else
    lines.push_back(
        {"CUDA", fmt::format("no plug-in; here: {}",
                             no_driver.empty() ? "a driver" : fmt::format("none ({})", no_driver))});
  lines.push_back(
      {"plug-in", plugin.contents != nullptr ? plugin.path : fmt::format("none ({})", plugin.refusal)});
  return lines;
}

}  // namespace kolo
