#include <bench/peer.h>

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <thread>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/process.h>
#include <kolo/core/runtime/group.h>

namespace kolo::bench {
namespace {

// The cores of all ranks; launchers may have bound each rank to its own.
cpu_set_t cores_of_all_ranks() {
  cpu_set_t own;
  sched_getaffinity(0, sizeof own, &own);
  std::string mask;
  for (int core = 0; core < CPU_SETSIZE; ++core) mask += CPU_ISSET(core, &own) ? '1' : '0';
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const std::string& of_rank : world_group().allgather(mask))
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (of_rank[static_cast<std::size_t>(core)] == '1') CPU_SET(core, &all);
  return all;
}

// While it lives this thread, and what it starts, may use these cores.
class OnCores {
 public:
  explicit OnCores(const cpu_set_t& cores) {
    sched_getaffinity(0, sizeof before_, &before_);
    sched_setaffinity(0, sizeof cores, &cores);
  }
  OnCores(const OnCores&) = delete;
  OnCores& operator=(const OnCores&) = delete;
  ~OnCores() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

// A peer that uses MPI is a job of its own, not a rank of this one.
constexpr char kWithoutLauncher[] =
    "unset $(env | sed -n 's/^\\(\\(OMPI\\|PMIX\\|PRTE\\)_[A-Za-z0-9_]*\\)=.*/\\1/p'); ";

struct Ended {
  std::string output;
  int exit_code = 0;
};

Ended run_command(const std::string& command) {
  FILE* const pipe = popen((kWithoutLauncher + command).c_str(), "r");
  if (pipe == nullptr) throw FailedPreconditionError("--against: the shell cannot be started");
  Ended ended;
  std::array<char, 4096> piece{};
  while (const std::size_t bytes = std::fread(piece.data(), 1, piece.size(), pipe))
    ended.output.append(piece.data(), bytes);
  const int status = pclose(pipe);
  ended.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

PeerRow row_of(const std::string& command, const Ended& ended) {
  if (ended.exit_code != 0)
    throw FailedPreconditionError("--against: \"{}\" ended with exit code {}; it must be 0", command,
                                  ended.exit_code);
  for (std::size_t begin = 0; begin < ended.output.size();) {
    const std::size_t end = std::min(ended.output.find('\n', begin), ended.output.size());
    const auto line = nlohmann::json::parse(ended.output.substr(begin, end - begin), nullptr, false);
    begin = end + 1;
    if (!line.is_object()) continue;
    try {
      return {line.at("model"), line.at("params"), line.at("ranks"),  line.at("threads"),
              line.at("batch"), line.at("ms"),     line.at("min_ms"), line.at("peak_mib")};
    } catch (const nlohmann::json::exception& error) {
      throw FailedPreconditionError(
          "--against: \"{}\" printed {}; it must have the fields of kolo-bench train: {}", command,
          json_text(line), error.what());
    }
  }
  throw FailedPreconditionError("--against: \"{}\" printed no line that is a JSON object", command);
}

// MPI's own waiting keeps a core busy, which the peer needs.
void sleep_until_all_are_here() {
  if (process().size == 1) return;  // perhaps without MPI
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int here = 0;;) {
    MPI_Test(&request, &here, MPI_STATUS_IGNORE);
    if (here != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

PeerRow run_peer(const std::string& command, const std::string& model, double seconds) {
  const cpu_set_t cores = cores_of_all_ranks();
  PeerRow row;
  std::string error;
  if (process().rank == 0) try {
      const OnCores on(cores);
      const std::string line = fmt::format("{} --models {} --seconds {}", command, model, seconds);
      row = row_of(line, run_command(line));
    } catch (const Error& failed) {
      error = failed.what();
    }
  sleep_until_all_are_here();
  throw_if_any_failed(world_group(), Code::failed_precondition, error);
  return row;
}

}  // namespace kolo::bench
