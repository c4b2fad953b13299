#include <kolo/collectives/transport/open_files.h>

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

namespace kolo::detail {
namespace {

// Lifelines, the memory of the host's ranks, MPI's own, the program's.
constexpr rlim_t kOtherFiles = 64;

}  // namespace

std::string allow_connections(int ranks_elsewhere) {
  const rlim_t needed = static_cast<rlim_t>(ranks_elsewhere) + kOtherFiles;
  rlimit limit{};
  if (ranks_elsewhere == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return "";
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= needed) return "";
  return fmt::format("{} files may be open; {} ranks on other hosts may need {} (ulimit -n)", limit.rlim_cur,
                     ranks_elsewhere, needed);
}

}  // namespace kolo::detail
