// Finds the operations that cannot end: a rank has not come to them, has left, or is gone. And lets the ranks
// leave together.
//
// All of it goes along one tree of ranks, so a rank talks to its parent and its children alone, whatever
// happens and however many ranks there are. In an undisturbed job no note is sent before the end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/collectives/progress/rank_set.h>
#include <kolo/collectives/progress/spread.h>
#include <kolo/collectives/progress/stall_reporter.h>
#include <kolo/collectives/transport/mailbox.h>

namespace kolo {

/// What is said of a rank whose process or host is gone. last_step: −1 if none is known.
/// Where this process has heard SIGTERM before, ` (the job was being ended by SIGTERM)` follows: Slurm's
/// --signal=TERM ends mpirun's daemons, and with them their ranks.
std::string text_of_loss(int rank, const std::string& host, std::int64_t last_step);

/// An operation that this rank has entered and not finished. channel: the number that all ranks of the
/// channel call it by, and no other channel.
struct Waiting {
  int channel = 0;
  std::int64_t ticket = 0;
  std::string_view label;
  std::chrono::steady_clock::time_point since;
};

/// The last operation that this rank has finished on a channel; none yet: -1.
struct Reached {
  int channel = 0;
  std::int64_t ticket = -1;
};

/// One thread: the communication thread.
class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;
  using Limits = StallLimits;

  /// hosts: of every rank, in rank order. `mail` outlives the watchdog.
  Watchdog(Mailbox& mail, int rank, std::vector<std::string> hosts, Limits limits);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Who takes part in the operations of `channel`: all ranks, unless this was called on its ranks (on others
  /// it need not be). Only these are waited for, and only their leaving ends an operation there.
  void set_members(int channel, const std::vector<int>& ranks);

  /// Reads and answers notes, and looks at what this rank waits for.
  void poll(Clock::time_point now, std::span<const Waiting> waiting, std::span<const Reached> finished);

  /// Why this operation cannot end, if that is known: DeadlineExceededError (for every operation from then
  /// on) or, where a rank has left before it, UnavailableError `rank <r> on <host> is gone (exited)`.
  std::exception_ptr verdict(int channel, std::int64_t ticket) const;
  const std::vector<std::string>& hosts() const { return hosts_; }

  /// Why all operations have been given up; nullptr if they have not.
  std::exception_ptr given_up() const { return given_up_; }

  /// This rank has seen that another's process or host is gone, and tells all others: every operation is
  /// given up with UnavailableError `rank <r> on <host> is gone (last step <s>)`. The first one that a rank
  /// hears of counts. last_step: the last one that was completed here; −1: unknown.
  void lost(int rank, std::int64_t last_step);
  /// True on all ranks after that. Any thread.
  bool is_anyone_gone() const { return is_anyone_gone_; }

  /// This rank takes part in nothing beyond what it has finished. It goes on to poll until all have left.
  void announce_exit();
  /// Some rank has announced its exit.
  bool has_anyone_left() const { return has_anyone_left_; }
  /// Every rank has.
  bool have_all_left() const { return have_all_left_; }

 private:
  struct Exited {
    std::int64_t ticket;  // the first operation without the rank
    int rank;
  };

  using RankSet = detail::RankSet;

  int size() const { return static_cast<int>(hosts_.size()); }
  RankSet members_of(int channel) const;
  void read(const Mail& mail);
  void post(int to, int kind, std::string_view rest = {});
  bool try_to_post(int to, int kind, std::string_view rest);
  detail::Standing standing_of(const std::string& key) const;
  void carry_out(const detail::StallReporter::Ruling& ruling);
  void spread(const std::string& word);
  void hear(const std::string& word);
  void give_up(const std::string& text);
  void know_of_leaving();
  void tell_of_leaving(int from);
  void child_has_left(int child);
  void leave_if_all_below_have();
  void all_have_left();

  Mailbox& mail_;
  const int rank_;
  const std::vector<std::string> hosts_;
  std::map<int, RankSet> members_;  // by channel; all ranks where it is not here
  Clock::time_point now_;
  std::span<const Waiting> waiting_;  // while polling
  std::span<const Reached> finished_;
  detail::StallReporter stalls_;
  detail::Spread spread_;
  std::map<int, Exited> exited_;  // by channel
  RankSet lost_;
  std::exception_ptr given_up_;
  std::atomic<bool> is_anyone_gone_{false};
  bool has_left_ = false, has_anyone_left_ = false, has_told_parent_ = false, have_all_left_ = false;
  bool has_told_of_leaving_ = false;
  Clock::time_point tell_of_leaving_at_;
  RankSet children_left_;  // and all below them
};

}  // namespace kolo
