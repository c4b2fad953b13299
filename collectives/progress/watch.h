// Finds the operations that some ranks have entered and others do not, and the ranks that have left.
//
// A rank that waits too long tells the rank that asks (rank 0 of the job, or the root of a process set),
// whose communication thread lives even while its program computes or sleeps. That one asks every rank how
// far it is, warns once with the names of those that are missing, and at the second limit has all give up. In
// an undisturbed job no note is ever sent.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/collectives/transport/mailbox.h>

namespace kolo {

/// How long an operation may wait for ranks that have not come to it. 0 = for ever.
struct StallLimits {
  using Seconds = std::chrono::duration<double>;
  Seconds warning{60};
  Seconds abort{600};

  /// The earlier of the two.
  Seconds first() const;
};

namespace detail {

/// What the rank that asks knows of an operation that somebody waits for. One thread.
class StallCase {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = StallLimits::Seconds;
  struct Finding {
    bool all_ready = false;     // it is slow, not stalled
    std::string ended_because;  // not empty: the second limit has passed, and ranks are missing
  };

  /// members: the job's numbers of the ranks that are asked.
  StallCase(std::string label, std::vector<int> members, Clock::time_point since)
      : label_(std::move(label)), members_(std::move(members)), since_(since) {}

  const std::vector<int>& members() const { return members_; }
  /// Somebody has waited for longer than was known.
  void waited_since(Clock::time_point since) { since_ = std::min(since_, since); }
  /// All members are being asked.
  void asked(Clock::time_point now, const StallLimits& limits);
  /// place: in the list of members.
  void answered(std::size_t place, bool is_ready) {
    answers_.at(place) = is_ready ? Answer::ready : Answer::missing;
  }
  /// Once all have answered, or had the time to: what they said. Warns once, after the first limit.
  Finding judge(Clock::time_point now, const StallLimits& limits);
  bool is_to_ask_again(Clock::time_point now, const StallLimits& limits) const;

 private:
  enum class Answer : std::uint8_t { none, ready, missing };

  bool all_answered() const;

  std::string label_;
  std::vector<int> members_;
  Clock::time_point since_, asked_;
  bool asked_at_limit_ = false;
  bool warned_ = false;
  std::vector<Answer> answers_;  // by member
};

}  // namespace detail

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
  using Limits = StallLimits;

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
  struct Key {
    int channel;
    std::int64_t ticket;
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): of clang-tidy 14
  };
  std::vector<int> members_of(int channel) const;
  int size() const { return static_cast<int>(hosts_.size()); }
  void read(const Mail& mail, std::span<const Waiting> waiting, std::span<const Reached> finished);
  void report(const Waiting& waiting);
  void open_case(Key key, std::string label, std::vector<int> members, Clock::time_point since);
  void ask(Key key, detail::StallCase& stalled);
  // True when the case is closed.
  bool judge(Key key, detail::StallCase& stalled, bool here);
  void give_up(const std::string& text);
  // False: something has been given up before.
  bool give_up_without(int rank, std::int64_t last_step);

  Mailbox& mail_;
  const int rank_;
  const std::vector<std::string> hosts_;
  const Limits limits_;
  std::map<int, std::vector<int>> members_;  // by channel; all ranks where it is not here
  Clock::time_point now_;
  std::map<Key, detail::StallCase> cases_;  // rank 0 only
  std::optional<Key> reported_;             // the last one this rank has told rank 0 about
  // By rank: what it had finished, by channel, when it left.
  std::vector<std::optional<std::map<int, std::int64_t>>> left_;
  std::exception_ptr given_up_;
  std::atomic<bool> is_anyone_gone_{false};
};

}  // namespace kolo

namespace kolo::detail {

/// Finds out which ranks have not come to an operation that others wait for. Nothing is sent before the first
/// limit has passed.
/// A rank that waits too long tells the root of its set, which asks all ranks, warns once, and at the second
/// limit has the set ended. Ranks are those of the set. One thread.
class StallReporter {
 public:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    std::string name;
    std::string label;  // with the kind of operation
    Clock::time_point since;
  };
  using Send = std::function<void(int to, const std::string& message)>;
  /// This rank is ready for the operation of this name.
  using IsReady = std::function<bool(const std::string& name)>;

  /// members: the job's numbers of the ranks; root_host: for messages.
  StallReporter(int rank, std::vector<int> members, std::string root_host, StallLimits limits, Send send,
                IsReady is_ready);

  bool is_late(Clock::time_point now, Clock::time_point since) const;
  /// What this rank waits for and is late. The text of an error that ends the set, once that is decided: on
  /// the root, or here alone if the root does not answer.
  std::optional<std::string> poll(Clock::time_point now, const std::vector<Waiting>& waiting);
  void receive(Clock::time_point now, int from, std::string_view message);
  /// Root: the operation is no longer waited for.
  void decided(const std::string& name) {
    if (!cases_.empty()) cases_.erase(name);
  }

 private:
  void open_case(const std::string& name, const std::string& label, Clock::time_point since);
  void ask(const std::string& name, StallCase& stalled);
  std::optional<std::string> judge(const std::string& name, StallCase& stalled);

  const int rank_;
  const std::vector<int> members_;
  const std::string root_host_;
  const StallLimits limits_;
  const Send send_;
  const IsReady is_ready_;
  Clock::time_point now_;
  std::map<std::string, StallCase> cases_;             // root only
  std::map<std::string, Clock::time_point> reported_;  // to the root, and since when this rank waited then
};

}  // namespace kolo::detail
