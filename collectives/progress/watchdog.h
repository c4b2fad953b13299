// Finds the operations that some ranks have entered and others do not, and the ranks that have left.
//
// A rank that waits too long in an operation tells rank 0, whose communication thread lives even while its
// program computes or sleeps. Rank 0 asks every rank how far it is, warns once with the names of those that
// are missing, and at the second limit tells all ranks to give up. In an undisturbed job no note is ever
// sent.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/collectives/transport/mailbox.h>

namespace kolo {

/// What is said of a rank whose process or host is gone. last_step: −1 if none is known.
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
  using Seconds = std::chrono::duration<double>;
  struct Limits {
    Seconds warning{60};  // 0 = never
    Seconds abort{600};   // 0 = never
  };

  /// hosts: of every rank, in rank order. `mail` outlives the watchdog.
  Watchdog(Mailbox& mail, int rank, std::vector<std::string> hosts, Limits limits);

  /// Who takes part in the operations of `channel`: all ranks, unless this was called on its ranks (on others
  /// it need not be). Only these are waited for, and only their leaving ends an operation there.
  void set_members(int channel, std::vector<int> ranks) { members_[channel] = std::move(ranks); }

  /// Reads and answers notes, and looks at what this rank waits for.
  void poll(Clock::time_point now, std::span<const Waiting> waiting, std::span<const Reached> finished);

  /// Why this operation cannot end, if that is known: DeadlineExceededError (for every operation from then
  /// on) or, where a rank has left before it, UnavailableError `rank <r> on <host> is gone (exited)`.
  std::exception_ptr verdict(int channel, std::int64_t ticket) const;
  const std::vector<std::string>& hosts() const { return hosts_; }

  /// Why all operations have been given up; nullptr if they have not.
  std::exception_ptr given_up() const { return given_up_; }

  /// This rank has seen that another's process or host is gone, and tells all others: every operation is
  /// given up with UnavailableError `rank <r> on <host> is gone (last step <s>)`. Only the first one counts.
  /// last_step: the last one that was completed here; −1: unknown.
  void lost(int rank, std::int64_t last_step);
  /// True on all ranks after that. Any thread.
  bool is_anyone_gone() const { return is_anyone_gone_; }

  /// Tells all others that this rank takes part in nothing beyond what it has finished.
  void announce_exit(std::span<const Reached> finished);

 private:
  enum class Answer : std::uint8_t { none, ready, missing };
  struct Key {
    int channel;
    std::int64_t ticket;
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): of clang-tidy 14
  };
  // What rank 0 knows of an operation that somebody waits for.
  struct Case {
    std::string label;
    Clock::time_point since;
    Clock::time_point asked;
    bool asked_at_limit = false;
    bool warned = false;
    std::vector<int> members;
    std::vector<Answer> answers;  // by member
  };

  std::vector<int> members_of(int channel) const;
  int size() const { return static_cast<int>(hosts_.size()); }
  void read(const Mail& mail, std::span<const Waiting> waiting, std::span<const Reached> finished);
  void report(const Waiting& waiting);
  void open_case(Key key, std::string label, std::vector<int> members, Clock::time_point since);
  void ask(Key key, Case& stalled);
  // True when the case is closed.
  bool judge(Key key, Case& stalled, bool here);
  void give_up(const std::string& text);
  // False: something has been given up before.
  bool give_up_without(int rank, std::int64_t last_step);

  Mailbox& mail_;
  const int rank_;
  const std::vector<std::string> hosts_;
  const Limits limits_;
  const Seconds first_limit_;
  std::map<int, std::vector<int>> members_;  // by channel; all ranks where it is not here
  Clock::time_point now_;
  std::map<Key, Case> cases_;    // rank 0 only
  std::optional<Key> reported_;  // the last one this rank has told rank 0 about
  // By rank: what it had finished, by channel, when it left.
  std::vector<std::optional<std::map<int, std::int64_t>>> left_;
  std::exception_ptr given_up_;
  std::atomic<bool> is_anyone_gone_{false};
};

}  // namespace kolo
