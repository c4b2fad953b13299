#include <kolo/launcher/check_build.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string_view>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/launcher/child.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/program_search.h>
#include <kolo/launcher/rank_starter.h>
#include <kolo/launcher/srun_command.h>

namespace kolo::launcher {
namespace {

constexpr std::chrono::seconds kDriverPatience{60};  // eight GPUs that nobody uses take seconds to wake up

// kolorun itself knows nothing of devices.
std::string gpu_lines() {
  const std::string inspect = own_folder().append("/kolo-inspect");
  std::string lines;
  try {
    lines = run_captured({inspect, "gpu"}, kDriverPatience, nullptr).out;
  } catch (const NotFoundError&) {
  }
  return lines.empty() ? fmt::format("CUDA: not known, since {} does not tell\n", inspect) : lines;
}

// The components of a framework in lines `mca:ras:slurm:version:"…"`.
std::string components(const std::string& info, const std::string& framework) {
  const std::string start = "mca:" + framework + ":";
  std::vector<std::string> names;
  std::istringstream lines(info);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(start)) continue;
    const std::string name = line.substr(start.size(), line.find(':', start.size()) - start.size());
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

// In what `srun --mpi=list` prints: a heading that ends in `are...`, and below it a name on each line.
std::string kinds_of_pmi(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream words(list);
  for (std::string line; std::getline(words, line);) {
    const size_t first = line.find_first_not_of(" \t");
    const bool is_name = first != std::string::npos && line.find(' ', first) == std::string::npos;
    if (is_name && line.substr(first) != "none") names.push_back(line.substr(first));
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string batch_system_lines(const Mpi& mpi, const Ask& ask) {
  std::string lines;
  if (mpi.kind == MpiKind::open_mpi) {
    const auto info = ask({"ompi_info", "--parsable"});
    const auto starter = mpi.has_prte() ? ask({"prte_info", "--parsable"}) : info;
    if (starter)
      lines += fmt::format("mpirun reads the hosts of: {}\nmpirun starts its daemons by: {}\n",
                           components(*starter, "ras"), components(*starter, "plm"));
    if (info) lines += fmt::format("PMIx of Open MPI: {}\n", components(*info, "pmix"));
    if (!info) lines += "mpirun's batch systems: not known, since ompi_info does not tell\n";
  }
  const auto list = ask({"srun", "--mpi=list"});
  return lines +
         fmt::format("srun: {}\n", list ? "speaks " + kinds_of_pmi(*list) : "not here, or does not answer");
}

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
  return text + batch_system_lines(own_mpi(), ask_program) + gpu_lines();
}

}  // namespace kolo::launcher
