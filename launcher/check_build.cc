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
#include <kolo/launcher/rank_starter.h>
#include <kolo/launcher/srun_command.h>

namespace kolo::launcher {
namespace {

constexpr int kDriverPatience_ms = 60000;  // eight GPUs that nobody uses take seconds to wake up

// What the command writes before it pauses for longer than `patience_ms`.
std::string output_of(const std::vector<std::string>& command, int patience_ms) {
  const Child child = start_child(command);
  std::string text;
  char bytes[4096];
  pollfd ready = {child.out.get(), POLLIN, 0};
  while (poll(&ready, 1, patience_ms) > 0) {
    const ssize_t count = read(child.out.get(), bytes, sizeof bytes);
    if (count <= 0) break;
    text.append(bytes, count);
  }
  kill(-child.pid, SIGKILL);
  waitpid(child.pid, nullptr, 0);
  return text;
}

// kolorun itself knows nothing of devices.
std::string gpu_lines() {
  const std::string inspect = own_folder().append("/kolo-inspect");
  std::string lines;
  try {
    lines = output_of({inspect, "gpu"}, kDriverPatience_ms);
  } catch (const NotFoundError&) {
  }
  return lines.empty() ? fmt::format("CUDA: not known, since {} does not tell\n", inspect) : lines;
}

}  // namespace

std::string check_build_text() {
  const Cores cores = find_cores();
  const std::string launcher = starter_of(launcher_of(own_mpi())).program(), path = find_in_path(launcher);
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    text += fmt::format("{}: {}\n", name, value);
  };
  add("kolo", KOLO_VERSION);
  add("compiler", KOLO_COMPILER);
  add("build type", KOLO_BUILD_TYPE);
  add("MPI library", fmt::format("MPI {}, {}", KOLO_MPI_STANDARD, KOLO_MPI_LIBRARIES));
  add("oneDNN", KOLO_DNNL_VERSION);
  const Mpi version = path.empty() ? Mpi() : parse_mpi(ask_program({path, "--version"}).value_or(""));
  add(launcher.c_str(), path.empty() ? "not in PATH" : fmt::format("{}, {}", path, version.text()));
  add("cores", fmt::format("{}{}", cores.count, cores.restricted ? " (affinity mask)" : ""));
  return text + gpu_lines();
}

}  // namespace kolo::launcher
