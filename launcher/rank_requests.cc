#include <kolo/launcher/rank_requests.h>

#include <signal.h>

#include <kolo/launcher/child.h>

namespace kolo::launcher {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBetweenLooksForRanks{20};
// srun and mpirun may lose a request while they start ranks on other hosts: it is made again, once a second.
constexpr milliseconds kStartsElsewhere{10000}, kBetweenRequests{1000};

}  // namespace

void RankRequests::begin(pid_t launcher) {
  launcher_ = launcher;
  start_ = Clock::now();
}

// Of a job that just starts, all: one that comes later would not know of the request.
bool RankRequests::are_ranks_there() const {
  const int there = count_ranks_below(launcher_);
  return there == ranks_ || (there > 0 && Clock::now() - start_ > kRanksNotThere);
}

// mpirun would kill the ranks a second after a SIGTERM of its own; SIGUSR1 it hands on to all hosts as it is.
void RankRequests::ask(int number) {
  are_asked_ = are_children_ ? are_ranks_there() && signal_children_of(launcher_, number) > 0
                             : kill(launcher_, SIGUSR1) == 0;
  kept_ = are_asked_ ? 0 : number;
  next_asking_.reset();
  const auto now = Clock::now();
  if (!are_children_ && now - start_ < kStartsElsewhere) next_asking_ = now + kBetweenRequests;
}

bool RankRequests::ask_again() {
  if (next_asking_ && Clock::now() >= *next_asking_) ask(SIGUSR1);
  if (kept_ == 0) return false;
  ask(kept_);
  return are_asked_;
}

std::optional<milliseconds> RankRequests::next_look() const {
  if (kept_ != 0) return kBetweenLooksForRanks;
  return next_asking_ ? std::optional(kBetweenRequests) : std::nullopt;
}

}  // namespace kolo::launcher
