#include <kolo/launcher/stop_here.h>

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <kolo/core/base/stop_signal.h>
#include <kolo/core/base/text.h>
#include <kolo/launcher/child.h>
#include <kolo/launcher/hosts.h>
#include <kolo/launcher/rank_requests.h>

namespace kolo::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBetweenLooks_ms = 50;

std::string file_of(pid_t pid, const char* name) { return fmt::format("/proc/{}/{}", pid, name); }

bool is_own_and_here(pid_t pid) {
  struct stat status = {};
  std::error_code failed;
  const auto space = [&](const std::string& path) {
    return std::filesystem::read_symlink(path, failed).string();
  };
  const auto is_shared = [&](const std::string& kind) {
    return space(file_of(pid, ("ns/" + kind).c_str())) == space("/proc/self/ns/" + kind) && !failed;
  };
  // Hosts are told apart by their names: a container with one of its own is another.
  return stat(file_of(pid, "").c_str(), &status) == 0 && status.st_uid == geteuid() && is_shared("pid") &&
         is_shared("uts");
}

// It has a launcher's place in a job, and libkolo: mpirun's daemons have no place, other programs no libkolo.
bool is_rank(pid_t pid) {
  const std::string variables = '\0' + contents_of(file_of(pid, "environ"));
  constexpr std::string_view kPlaces[] = {"OMPI_COMM_WORLD_RANK=", "PMIX_RANK=", "PMI_RANK="};
  const bool has_place = std::any_of(std::begin(kPlaces), std::end(kPlaces), [&](std::string_view place) {
    return variables.find('\0' + std::string(place)) != std::string::npos;
  });
  return has_place && contents_of(file_of(pid, "maps")).find("/libkolo.so") != std::string::npos;
}

bool handles(pid_t pid, int signal) {
  const std::string status = contents_of(file_of(pid, "status"));
  constexpr std::string_view kCaught = "SigCgt:";
  const size_t found = status.find(kCaught);
  if (found == std::string::npos) return false;
  const auto caught = std::strtoull(status.c_str() + found + kCaught.size(), nullptr, 16);
  return (caught >> (signal - 1) & 1) != 0;
}

// False if the request would end it, and it may soon take one.
bool ask(pid_t pid) {
  const sigval value = {.sival_int = kHostGoesValue};
  if (handles(pid, SIGUSR1)) sigqueue(pid, SIGUSR1, value);
  else if (may_yet_take_requests(age_of(pid))) return false;
  else kill(pid, SIGTERM);
  return true;
}

std::vector<pid_t> ranks_here() {
  std::vector<pid_t> ranks;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failed)) {
    const auto pid = parse_int64(entry.path().filename().string());
    if (pid && is_own_and_here(static_cast<pid_t>(*pid)) && is_rank(static_cast<pid_t>(*pid)))
      ranks.push_back(static_cast<pid_t>(*pid));
  }
  return ranks;
}

}  // namespace

int stop_ranks_here(double wait_s) {
  std::vector<pid_t> ranks = ranks_here();
  const size_t asked = ranks.size();
  if (asked == 0) return fmt::print("kolorun: no rank of yours runs here\n"), 0;
  std::vector<pid_t> waiting = ranks;  // to be asked
  std::erase_if(waiting, ask);
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  while (!ranks.empty() && seconds() < wait_s) {
    poll(nullptr, 0, kBetweenLooks_ms);
    for (std::vector<pid_t>* const list : {&ranks, &waiting})
      std::erase_if(*list, [](pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; });
    std::erase_if(waiting, ask);
  }
  if (ranks.empty())
    return fmt::print("kolorun: {} here stopped within {:.1f} s\n", count_of(asked, "rank"), seconds()), 0;
  const std::string why = waiting.empty()
                              ? ""
                              : fmt::format("; {} did not come to where {} requests", waiting.size(),
                                            waiting.size() == 1 ? "it takes" : "they take");
  fmt::print(stderr, "kolorun: {} of {} here did not stop within {:g} s{}\n", ranks.size(),
             count_of(asked, "rank"), wait_s, why);
  return 1;
}

}  // namespace kolo::launcher
