// How one run of a job has ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kolo::launcher {

/// A program that does not understand its command line ends with it.
inline constexpr int kBadCommandLine = 2;

struct JobResult {
  int exit_code = 0;
  bool stop_requested = false;                     // by a signal to kolorun, or since the job's time ends
  bool was_cut_short = false;                      // a second signal or the grace's end has ended the ranks
  std::optional<std::int64_t> last_step = {};      // the largest that a rank has told
  std::optional<std::int64_t> planned_steps = {};  // as a rank that was stopped has told
  std::string end = {};         // of a job that failed, as kolorun has told it; may be empty
  bool ranks_disagree = false;  // on what to compute: another start would end alike
  // For an elastic job. Hosts by their names in the launcher's words.
  std::vector<std::string> lost_hosts = {}, hosts_without_start = {};
  std::string host_of_killed_rank = {};  // by SIGKILL or SIGBUS; "" for none
  bool asked_to_grow = false;
  std::vector<std::string> going_hosts = {};             // about to go, as their ranks have told
  std::chrono::steady_clock::time_point last_sign = {};  // of progress: a step, else the job's end
};

}  // namespace kolo::launcher
