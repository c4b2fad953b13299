#include <kolo/launcher/check_build.h>

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kolo/launcher/child.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/program_search.h>

namespace kolo::launcher {
namespace {

constexpr int kPatience_ms = 5000;

// The first line that the command writes within five seconds.
std::string first_line_of(const std::vector<std::string>& command) {
  const Child child = start_child(command);
  std::string text;
  char bytes[4096];
  pollfd ready = {child.out.get(), POLLIN, 0};
  while (text.find('\n') == std::string::npos && poll(&ready, 1, kPatience_ms) > 0) {
    const ssize_t count = read(child.out.get(), bytes, sizeof bytes);
    if (count <= 0) break;
    text.append(bytes, count);
  }
  kill(-child.pid, SIGKILL);
  waitpid(child.pid, nullptr, 0);
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::string check_build_text() {
  const Topology topology = detect_topology();
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
  add("cores", fmt::format("{}{}", topology.cores, topology.restricted ? " (affinity mask)" : ""));
  return text;
}

}  // namespace kolo::launcher
