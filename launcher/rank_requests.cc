#include <kolo/launcher/rank_requests.h>

#include <signal.h>
#include <sys/wait.h>

#include <kolo/core/base/child_program.h>
#include <kolo/launcher/child.h>

namespace kolo::launcher {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBetweenLooksForRanks{20}, kHasBegun{10000};
// srun and mpirun may lose a request while they start ranks on other hosts: it is made again, once a second.
constexpr milliseconds kStartsElsewhere{10000}, kBetweenRequests{1000};
constexpr std::chrono::minutes kUntilSession{2};
constexpr int kDaemonsHaveEnded = 244;  // of mpirun, in the middle of its start

}  // namespace

bool may_yet_take_requests(std::chrono::nanoseconds age) { return age < kUntilSession; }

void RankRequests::begin(pid_t launcher, milliseconds ago) {
  launcher_ = launcher;
  start_ = Clock::now() - ago;
}

// Of a job that just starts, all: one that comes later would not know of the request. Later any child counts:
// a program that has given itself a title, or that runs without its environment, does not look like a rank.
bool RankRequests::are_ranks_there() const {
  const auto age = Clock::now() - start_;
  if (age > kHasBegun) return true;
  const int there = count_ranks_below(launcher_);
  return there == ranks_ || (there > 0 && age > kRanksNotThere);
}

// mpirun would kill the ranks a second after a SIGTERM of its own; SIGUSR1 it hands on to all hosts as it is.
int RankRequests::signal_ranks(int number) const {
  if (are_children_) return signal_children_of(launcher_, number);
  return kill(launcher_, SIGUSR1) == 0 ? 1 : 0;
}

void RankRequests::ask(int number) {
  were_made_ = true;
  if (launcher_ <= 0) return;
  are_asked_ = (!are_children_ || are_ranks_there()) && signal_ranks(number) > 0;
  kept_ = are_asked_ ? 0 : number;
  next_asking_.reset();
  const auto now = Clock::now();
  if (!are_children_ && now - start_ < kStartsElsewhere) next_asking_ = now + kBetweenRequests;
}

void RankRequests::ask_to_go_on_elsewhere() {
  if (launcher_ > 0) signal_ranks(SIGUSR1);
}

// One that has begun long ago has no rank any more.
void RankRequests::give_up() {
  if (kept_ == 0) return;
  was_given_up_ = Clock::now() - start_ < kHasBegun + kRanksNotThere;
  kept_ = 0;
  next_asking_.reset();
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

void RankRequests::end(int wait_status) {
  code_ = detail::shell_code(wait_status);
  // A launcher takes the signal only once it starts daemons, so no rank was there.
  has_ended_launcher_ = were_made_ && WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGUSR1;
  launcher_ = 0;
  next_asking_.reset();
}

RankRequests::Effect RankRequests::effect(const Signs& signs) const {
  if (has_ended_launcher_) return Effect::job_not_begun;
  if (was_given_up_ && !signs.has_completed_step) return Effect::job_not_begun;
  // mpirun then takes the signal for handed on, and ends as a job that is done.
  if (were_made_ && signs.lacks_daemons && code_ == 0) return Effect::job_not_begun;
  const bool is_by_request = code_ == detail::kBySignal + SIGTERM || code_ == detail::kBySignal + SIGUSR1 ||
                             code_ == kDaemonsHaveEnded;
  const bool was_asked = were_made_ || signs.others_have_asked;
  if (!was_asked || !is_by_request || signs.was_forced || signs.has_completed_step) return Effect::none;
  const bool takes_them = signs.has_stopped_before || may_yet_take_requests(Clock::now() - start_);
  return takes_them ? Effect::ranks_ended_early : Effect::ranks_ended;
}

}  // namespace kolo::launcher
