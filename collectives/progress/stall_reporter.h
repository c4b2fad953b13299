// Finds out which ranks have not come to an operation that others wait for, or have left without it, by
// questions along a tree of ranks.
//
// A rank that waits too long tells its parent, which tells its own, up to the root. The root asks along the
// tree how far every rank is. Each rank adds up what its subtree has said, so nobody talks to more than its
// parent and its children. The root warns once with the names of those that are missing, and decides at the
// second limit. In an undisturbed job nothing is ever sent.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kolo/collectives/progress/rank_set.h>

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

/// What a rank is to an operation: it has not come to it; it has, or is through with it; it has left the job
/// without it.
enum class Standing : std::uint8_t { missing, ready, left };

/// What some ranks have answered, by place in the tree.
struct Standings {
  RankSet ready, missing, left;
  RankSet others;  // have no part in the operation

  explicit Standings(int ranks);
  void add(const Standings& more);
  void add(int rank, Standing standing);
  RankSet all() const { return ready | missing | left | others; }
};

/// What the root knows of an operation that somebody waits for. One thread.
class StallCase {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = StallLimits::Seconds;

  StallCase(std::string label, RankSet members, Clock::time_point since, const StallLimits& limits);

  const std::string& label() const { return label_; }
  const RankSet& members() const { return members_; }
  Seconds waited(Clock::time_point now) const { return now - since_; }
  /// Somebody has waited for longer than was known.
  void waited_since(Clock::time_point since) { since_ = std::min(since_, since); }

  /// All are being asked anew. Answers to earlier questions do not count any more.
  void asked(Clock::time_point now, std::int64_t round);
  void answered(std::int64_t round, const Standings& standings);
  /// Ranks that have had the time to answer and did not, and that were not among these before: those below
  /// them are to be asked directly, and get time for that.
  std::vector<int> newly_silent(Clock::time_point now);
  /// Those of all rounds that have not answered since.
  std::vector<int> silent() const;
  /// Of the members; the silent ones count as missing. Nothing: answers are still to come.
  std::optional<Standings> result(Clock::time_point now) const;

  std::int64_t round() const { return round_; }
  bool is_asked_at_limit() const { return asked_at_limit_; }
  bool is_to_ask_again(Clock::time_point now) const;
  /// True once, after the first limit.
  bool is_to_warn(Clock::time_point now);
  /// "<label>: waited 1.0 s; ready on [0-699], missing on [700 on node88]". numbers: the job's, by place;
  /// hosts: by the job's number.
  std::string describe(Clock::time_point now, const Standings& found, std::span<const int> numbers,
                       std::span<const std::string> hosts) const;

 private:
  RankSet unheard() const { return expected_ - heard_.all(); }

  std::string label_;
  RankSet members_;
  RankSet expected_;  // to answer: the members, and the ranks of the tree above them
  Clock::time_point since_, asked_, deadline_;
  const StallLimits limits_;
  std::int64_t round_ = 0;
  bool asked_at_limit_ = false;
  bool warned_ = false;
  Standings heard_;
  RankSet silent_;
};

/// One of them on each rank of a tree. One thread.
class StallReporter {
 public:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    std::string key;    // what all ranks call the operation
    std::string label;  // for messages
    RankSet members;    // whose operation it is
    Clock::time_point since;
    bool is_patient = false;  // it may wait for ever, but not for a rank that has left
  };
  /// On the root; `alone`: on a rank that the root does not answer.
  struct Ruling {
    std::string key;
    int left = -1;              // this rank, by place, has left before the operation; else:
    std::string ended_because;  // the second limit has passed, and ranks are missing
    bool alone = false;
  };
  using Send = std::function<void(int to, const std::string& note)>;
  /// How far this rank is.
  using StandingOf = std::function<Standing(const std::string& key)>;

  /// numbers: the job's, of the ranks of the tree; hosts: by the job's number, they outlive this.
  StallReporter(int rank, std::vector<int> numbers, std::span<const std::string> hosts, StallLimits limits,
                Send send, StandingOf standing_of);

  RankSet all() const { return RankSet(numbers_.size()).set(); }
  /// Some rank has left: from now on nobody waits for long without asking who it was.
  void someone_has_left();
  bool has_someone_left() const { return someone_has_left_; }
  bool is_late(Clock::time_point now, Clock::time_point since) const;
  /// waiting: what this rank waits for and is late.
  std::vector<Ruling> poll(Clock::time_point now, const std::vector<Waiting>& waiting);
  void receive(Clock::time_point now, int from, std::string_view note);
  /// The operation of this key is no longer waited for.
  void decided(const std::string& key);

 private:
  // Of an operation that this rank, or one below it, waits for.
  struct Report {
    std::optional<Clock::time_point> since;  // this rank waits for it
    std::optional<Clock::time_point> asked;  // the root wanted to know
    Clock::time_point next;                  // the earliest time for the next one
    int attempts = 0;                        // since it was asked
  };
  // What this rank has been asked, and collects for those who asked.
  struct Question {
    std::int64_t round = 0;
    RankSet members;
    std::vector<int> askers;
    std::vector<int> awaited;  // ranks that this one has asked
    Clock::time_point asked, deadline;
    Standings heard;
    bool answered = false;
  };

  int size() const { return static_cast<int>(numbers_.size()); }
  void report(const Waiting& waiting, bool is_own);
  void open_case(const Waiting& waiting);
  void ask_all(const std::string& key, StallCase& stalled);
  std::vector<int> ask_children(int rank, const std::string& key, std::int64_t round, const RankSet& members);
  void asked(int from, const std::string& key, std::int64_t round, RankSet members);
  void answered(int from, const std::string& key, std::int64_t round, const Standings& standings);
  void answer(const std::string& key, Question& question);
  Standings own_standing(const std::string& key, const RankSet& members) const;
  std::optional<Ruling> judge(const std::string& key, StallCase& stalled);
  std::optional<Ruling> give_up_alone(const Waiting& waiting) const;
  void forget_old();

  const int rank_;
  const std::vector<int> numbers_;
  const std::span<const std::string> hosts_;
  const StallLimits limits_;
  const Send send_;
  const StandingOf standing_of_;
  Clock::time_point now_;
  bool someone_has_left_ = false;
  std::map<std::string, Report> reports_;
  std::map<std::string, Question> questions_;
  std::map<std::string, StallCase> cases_;  // root only
  std::int64_t round_ = 0;                  // root only: of the last question
};

}  // namespace detail
}  // namespace kolo
