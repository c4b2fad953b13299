// Asking the ranks of a job to stop, also where they have not started yet, and what has come of it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

namespace kolo::launcher {

/// Programs read data and import libraries before they take requests. True of one that takes none at this
/// age, and may yet come to where it does; an older one is a program that takes none.
bool may_yet_take_requests(std::chrono::nanoseconds age);

class RankRequests {
 public:
  using Clock = std::chrono::steady_clock;

  /// are_children: the launcher starts all ranks itself, as mpirun does on its own host.
  RankRequests(int ranks, bool are_children) : ranks_(ranks), are_children_(are_children) {}
  /// Call once, when the launcher has started, so long ago.
  void begin(pid_t launcher, std::chrono::milliseconds ago = {});

  /// How long to wait for ranks that are not there, since the job just starts or ends.
  static constexpr std::chrono::milliseconds kRanksNotThere{5000};

  /// By the signal `number` where the ranks are children of the launcher, else by SIGUSR1, which it hands on.
  /// If no rank is there the request is kept for ask_again(). After end() it is noted alone.
  void ask(int number);
  /// Makes a request again that has found no rank, or that may have been lost. True if it has now found them.
  bool ask_again();
  /// Whether the last request has found ranks.
  bool are_asked() const { return are_asked_; }
  bool were_made() const { return were_made_; }
  /// Whether a request waits for the first ranks.
  bool is_kept() const { return kept_ != 0; }
  /// Has ranks that take requests stop for a purpose of kolorun's own: once, and not counted as made.
  void ask_to_go_on_elsewhere();
  /// When to call ask_again(); nothing if there is no need.
  std::optional<std::chrono::milliseconds> next_look() const;

  /// Call it where the launcher is ended without waiting any longer for its ranks: none is asked any more.
  void give_up();
  /// Call once, when the launcher has ended, as waitpid tells it.
  void end(int wait_status);

  /// What the requests have done to the job.
  enum class Effect {
    none,               // none was made, or the ranks have taken it
    job_not_begun,      // no rank was there to take it
    ranks_ended_early,  // their program takes none, or not yet
    ranks_ended         // it takes none, and may have done what nobody would know of
  };
  /// What the job's output tells.
  struct Signs {
    bool has_completed_step = false;
    bool lacks_daemons = false;       // mpirun says that it had none to hand the request to
    bool was_forced = false;          // the ranks were ended without waiting for them
    bool others_have_asked = false;   // the ranks, on their own or for another purpose than a stop
    bool has_stopped_before = false;  // an earlier start of this program has taken a request
  };
  /// After end().
  Effect effect(const Signs& signs) const;

 private:
  bool are_ranks_there() const;
  int signal_ranks(int number) const;

  const int ranks_;
  const bool are_children_;
  pid_t launcher_ = 0;
  Clock::time_point start_;
  bool are_asked_ = false;
  int kept_ = 0;  // the signal of a request that has found no rank
  bool were_made_ = false, was_given_up_ = false;
  bool has_ended_launcher_ = false;  // before that had a rank
  int code_ = 0;                     // of the launcher, as a shell tells it
  std::optional<Clock::time_point> next_asking_;
};

}  // namespace kolo::launcher
