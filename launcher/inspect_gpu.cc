// kolo-inspect gpu: what there is of GPUs, CUDA and its libraries, and what this build was made with. kolorun
// --check-build prints it, too. With a file: which of cuDNN's engines it keeps.
#include <fmt/core.h>

#include <kolo/core/device/engine_book.h>
#include <kolo/core/device/plugin.h>
#include <kolo/launcher/inspect_command.h>

namespace kolo::launcher {
namespace {

constexpr char kGpuUsage[] = "gpu [--engines FILE]";

void list_engines(const std::string& path) {
  std::string machine;
  for (const EngineEntry& entry : read_engine_file(path)) {
    if (entry.machine != machine) fmt::print("{}\n", machine = entry.machine);
    fmt::print("  engine {:<4} {:<10}  {}\n", entry.choice.engine,
               entry.choice.by_time ? fmt::format("{:.4f} ms", entry.choice.milliseconds) : "not timed",
               entry.question);
  }
}

void inspect_gpu(const std::vector<std::string>& words) {
  if (words.size() == 1 && asks_for_help(words[0])) return fmt::print("Usage: kolo-inspect {}\n", kGpuUsage);
  if (words.size() == 2 && words[0] == "--engines") return list_engines(words[1]);
  if (!words.empty())
    throw CommandLineError(
        words[0] == "--engines"
            ? fmt::format("--engines needs one FILE; usage: kolo-inspect {}", kGpuUsage)
            : fmt::format("unknown word \"{}\"; usage: kolo-inspect {}", words[0], kGpuUsage));
  for (const BuildLine& line : plugin_build_lines()) fmt::print("{}: {}\n", line.name, line.text);
}

const RegisterInspectCommand gpu_command("gpu", {.usage = kGpuUsage,
                                                 .summary = "driver, GPUs and NVIDIA's libraries here, and "
                                                            "those that kolo was built with; or the engines "
                                                            "of cuDNN that a file keeps",
                                                 .run = inspect_gpu});

}  // namespace
}  // namespace kolo::launcher
