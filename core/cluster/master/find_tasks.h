// How a master finds the tasks of a new session: each is asked for its status until it answers.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <kolo/core/cluster/worker/peers.h>

namespace kolo::detail {

struct FindTasksOptions {
  std::string version;                        // that all tasks must have
  std::uint64_t cluster_fingerprint = 0;      // likewise
  std::chrono::milliseconds retry{1000};      // between two attempts
  std::chrono::milliseconds attempt{3000};    // one takes no longer
  std::chrono::milliseconds warning{10'000};  // between two lines about what is missing
};

/// What the tasks say of themselves, by name. Asks all at once; whoever does not answer is asked again, with
/// a line `CreateSession still waiting for response from worker: <task> (<addr>: <last error>)` from time to
/// time. Throws DeadlineExceededError naming every task that is missing, CancelledError for a stop request,
/// FailedPreconditionError `<addr> is <task> of another cluster` or naming both versions, and what a task
/// refuses for good.
std::map<std::string, TaskStatus> find_tasks(Peers& peers, const std::vector<std::string>& tasks,
                                             const FindTasksOptions& options, const Deadline& deadline);

}  // namespace kolo::detail
