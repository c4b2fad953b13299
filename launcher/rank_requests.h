// Asking the ranks of a job to stop, also where they have not started yet.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

namespace kolo::launcher {

class RankRequests {
 public:
  using Clock = std::chrono::steady_clock;

  /// are_children: the launcher starts all ranks itself, as mpirun does on its own host.
  RankRequests(int ranks, bool are_children) : ranks_(ranks), are_children_(are_children) {}
  /// Call once, when the launcher has started.
  void begin(pid_t launcher);

  /// How long to wait for ranks that are not there, since the job just starts or ends.
  static constexpr std::chrono::milliseconds kRanksNotThere{5000};

  /// By the signal `number` where the ranks are children of the launcher, else by SIGUSR1, which it hands on.
  /// If no rank is there the request is kept for ask_again().
  void ask(int number);
  /// Makes a request again that has found no rank, or that may have been lost. True if it has now found them.
  bool ask_again();
  /// Whether the last request has found ranks.
  bool are_asked() const { return are_asked_; }
  bool is_kept() const { return kept_ != 0; }
  /// When to call ask_again(); nothing if there is no need.
  std::optional<std::chrono::milliseconds> next_look() const;

 private:
  bool are_ranks_there() const;

  const int ranks_;
  const bool are_children_;
  pid_t launcher_ = 0;
  Clock::time_point start_;
  bool are_asked_ = false;
  int kept_ = 0;  // the signal of a request that has found no rank
  std::optional<Clock::time_point> next_asking_;
};

}  // namespace kolo::launcher
