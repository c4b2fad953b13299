#include <kolo/core/base/launcher.h>

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo::detail {
namespace {

struct Marks {
  const char* launcher;
  const char* rank;
  const char* size;
};

// Under `srun --mpi=pmix` Open MPI's own variables are absent. A Slurm batch script has SLURM_PROCID but is
// no step: only the step's number of tasks counts.
constexpr Marks kLaunchers[] = {{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                {"PMIx", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
                                {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
                                {"PMI", "PMI_RANK", "PMI_SIZE"}};

std::atomic<bool> initialised{false};

std::optional<int> number_in(const std::optional<std::string>& text) {
  const auto number = parse_int64(text.value_or(""));
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace

std::optional<Launcher> find_launcher() {
  for (const auto& marks : kLaunchers) {
    const auto rank = env_string(marks.rank);
    if (rank) return Launcher{marks.launcher, number_in(env_string(marks.size)), number_in(rank)};
  }
  return std::nullopt;
}

bool is_under_kolorun() { return env_string("KOLO_LAUNCHER") == "kolorun"; }

bool is_own_terminal(int descriptor) {
  return isatty(descriptor) == 1 && !env_string("OMPI_COMM_WORLD_SIZE");
}

bool rewrites_lines() {
  if (const auto of_kolorun = env_string("KOLO_TERMINAL")) return *of_kolorun == "1";
  return is_own_terminal(STDOUT_FILENO);
}

namespace {

constexpr const char* kMark = "KOLO_RANK_PROCESS";

// The place of this process: rank and job, as its launcher says them.
std::string place_in_job() {
  std::string place;
  for (const auto& marks : kLaunchers)
    if (const auto rank = env_string(marks.rank); rank && place.empty()) place = *rank;
  for (const char* name : {"PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID"})
    place += fmt::format(" {}", env_string(name).value_or("-"));
  return place;
}

}  // namespace

std::string pid_namespace() {
  char name[64];
  const ssize_t length = readlink("/proc/self/ns/pid", name, sizeof name);
  return length > 0 ? std::string(name, static_cast<std::size_t>(length)) : "";
}

void mark_rank_process() { setenv(kMark, fmt::format("{} {}", getpid(), place_in_job()).c_str(), 1); }

void refuse_child_of_rank() {
  const std::string mark = env_string(kMark).value_or("");
  const std::size_t space = mark.find(' ');
  const auto pid = parse_int64(std::string_view(mark).substr(0, space));
  if (!pid || *pid == getpid()) return;
  const std::string place = mark.substr(space + 1);
  if (place != place_in_job()) return;  // a job of its own, which a rank has started
  throw FailedPreconditionError(
      "init: this process was started by rank {} (process {}), whose place in the job it inherits; start it "
      "without the variables OMPI_*, PMIX_* and KOLO_RANK_PROCESS, or by a kolorun of its own",
      place.substr(0, place.find(' ')), *pid);
}

void set_initialised(bool yes) { initialised.store(yes); }

void require_init_under_launcher(const std::string& who) {
  if (initialised.load()) return;
  const auto launcher = find_launcher();
  if (!launcher || launcher->size.value_or(1) <= 1) return;
  throw FailedPreconditionError(
      "{}: {} started {} ranks, but kolo::init() was not called, so each of them would train by itself; add "
      "the line `kolo::init(&argc, &argv);` at the beginning of main()",
      who, launcher->name, *launcher->size);
}

}  // namespace kolo::detail
