#include <kolo/launcher/check_build.h>

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kolo/core/base/error.h>
#include <kolo/launcher/child.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/program_search.h>

namespace kolo::launcher {
namespace {

constexpr int kPatience_ms = 5000;
constexpr int kDriverPatience_ms = 60000;  // eight GPUs that nobody uses take seconds to wake up

enum class Until { first_line, end };

// What the command writes before it pauses for longer than `patience_ms`.
std::string output_of(const std::vector<std::string>& command, Until until, int patience_ms) {
  const Child child = start_child(command);
  std::string text;
  char bytes[4096];
  pollfd ready = {child.out.get(), POLLIN, 0};
  const auto is_enough = [&] { return until == Until::first_line && text.find('\n') != std::string::npos; };
  while (!is_enough() && poll(&ready, 1, patience_ms) > 0) {
    const ssize_t count = read(child.out.get(), bytes, sizeof bytes);
    if (count <= 0) break;
    text.append(bytes, count);
  }
  kill(-child.pid, SIGKILL);
  waitpid(child.pid, nullptr, 0);
  return text;
}

std::string first_line_of(const std::vector<std::string>& command) {
  const std::string text = output_of(command, Until::first_line, kPatience_ms);
  return text.substr(0, text.find('\n'));
}

// kolorun itself knows nothing of devices.
std::string gpu_lines() {
  const std::string inspect = own_folder().append("/kolo-inspect");
  std::string lines;
  try {
    lines = output_of({inspect, "gpu"}, Until::end, kDriverPatience_ms);
  } catch (const NotFoundError&) {
  }
  return lines.empty() ? fmt::format("CUDA: not known, since {} does not tell\n", inspect) : lines;
}

}  // namespace

std::string check_build_text() {
  const Cores cores = find_cores();
  const std::string mpirun = find_in_path("mpirun");
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    text += fmt::format("{}: {}\n", name, value);
  };
  add("kolo", KOLO_VERSION);
  add("compiler", KOLO_COMPILER);
  add("build type", KOLO_BUILD_TYPE);
  add("MPI library", fmt::format("MPI {}, {}", KOLO_MPI_STANDARD, KOLO_MPI_LIBRARIES));
  add("oneDNN", KOLO_DNNL_VERSION);
  add("mpirun",
      mpirun.empty() ? "not in PATH" : fmt::format("{}, {}", mpirun, first_line_of({mpirun, "--version"})));
  add("cores", fmt::format("{}{}", cores.count, cores.restricted ? " (affinity mask)" : ""));
  return text + gpu_lines();
}

}  // namespace kolo::launcher
