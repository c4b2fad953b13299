#include <kolo/core/base/launcher.h>

#include <atomic>

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

}  // namespace

std::optional<Launcher> find_launcher() {
  for (const auto& marks : kLaunchers) {
    if (!env_string(marks.rank)) continue;
    Launcher found{marks.launcher, std::nullopt};
    if (const auto size = parse_int64(env_string(marks.size).value_or("")))
      found.size = static_cast<int>(*size);
    return found;
  }
  return std::nullopt;
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
