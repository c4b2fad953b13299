// kolo-inspect gpu: what there is of GPUs, CUDA and its libraries, and what this build was made with. kolorun
// --check-build prints it, too.
#include <fmt/core.h>

#include <kolo/core/device/plugin.h>
#include <kolo/launcher/inspect_command.h>

namespace kolo::launcher {
namespace {

constexpr char kGpuUsage[] = "gpu";

void inspect_gpu(const std::vector<std::string>& words) {
  if (words.size() == 1 && asks_for_help(words[0])) return fmt::print("Usage: kolo-inspect {}\n", kGpuUsage);
  if (!words.empty())
    throw CommandLineError(fmt::format("unknown word \"{}\"; usage: kolo-inspect {}", words[0], kGpuUsage));
  for (const BuildLine& line : plugin_build_lines()) fmt::print("{}: {}\n", line.name, line.text);
}

const RegisterInspectCommand gpu_command("gpu", {.usage = kGpuUsage,
                                                 .summary = "driver, GPUs and NVIDIA's libraries here, and "
                                                            "those that kolo was built with",
                                                 .run = inspect_gpu});

}  // namespace
}  // namespace kolo::launcher
