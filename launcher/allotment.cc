#include <kolo/launcher/allotment.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo::launcher {
namespace {

constexpr std::int64_t kMostRanks = std::numeric_limits<int>::max();

bool is_set(const char* name) { return std::getenv(name) != nullptr; }

int ranks_in(const char* name) { return static_cast<int>(env_int64(name, 1, 1, kMostRanks)); }

// "2(x3),1" is 2, 2, 2 and 1. Empty for a text that is no such list, or more than fits.
std::optional<std::int64_t> sum_of_tasks(std::string_view text) {
  std::int64_t sum = 0;
  while (!text.empty()) {
    std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    std::optional<std::int64_t> nodes = 1;
    if (const auto bracket = entry.find("(x"); bracket != std::string_view::npos && entry.back() == ')') {
      nodes = parse_int64(entry.substr(bracket + 2, entry.size() - bracket - 3));
      entry = entry.substr(0, bracket);
    }
    const auto tasks = parse_int64(entry);
    std::int64_t product = 0;
    if (!tasks || !nodes || *tasks < 1 || *nodes < 1 || __builtin_mul_overflow(*tasks, *nodes, &product) ||
        __builtin_add_overflow(sum, product, &sum))
      return std::nullopt;
  }
  return sum;
}

std::int64_t count_lines(const std::string& path) {
  std::ifstream file(path);
  std::int64_t lines = 0;
  for (std::string line; std::getline(file, line);) lines += !line.empty();
  return lines;
}

int checked(const char* name, std::optional<std::int64_t> ranks) {
  if (ranks && *ranks >= 1 && *ranks <= kMostRanks) return static_cast<int>(*ranks);
  throw InvalidArgumentError("{}=\"{}\" says no number of ranks; give it, as in: kolorun -n 2 program", name,
                             *env_string(name));
}

}  // namespace

std::optional<int> allotted_ranks() {
  if (is_set("SLURM_JOB_ID") && is_set("SLURM_NTASKS")) return ranks_in("SLURM_NTASKS");
  if (is_set("SLURM_JOB_ID") && is_set("SLURM_TASKS_PER_NODE"))
    return checked("SLURM_TASKS_PER_NODE", sum_of_tasks(*env_string("SLURM_TASKS_PER_NODE")));
  if (is_set("PBS_NODEFILE")) return checked("PBS_NODEFILE", count_lines(*env_string("PBS_NODEFILE")));
  for (const auto& [job, ranks] :
       {std::pair{"LSB_DJOB_HOSTFILE", "LSB_DJOB_NUMPROC"}, std::pair{"PE_HOSTFILE", "NSLOTS"}})
    if (is_set(job) && is_set(ranks)) return ranks_in(ranks);
  return std::nullopt;
}

}  // namespace kolo::launcher
