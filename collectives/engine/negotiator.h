// Finds out, for the ranks of one set, which operations are ready everywhere, and in which order all execute
// them.
//
// Ranks form a tree. A rank tells its parent of a name once every rank at or below it is ready for it; the
// root decides, and sends what is to be done down the tree: the same batches, in the same order, for all. A
// name that was agreed before is one bit in either direction. So a rank's part in a steady step is one
// message up and one to each of its children, and a rank that has nothing new sends nothing.
//
// Calls of one name follow each other on each rank (a name is free again when its operation has ended), so
// the n-th call of one rank belongs to the n-th of any other: that is a round. A round that some rank has
// refused fails on each rank as soon as it hears of it or comes to it, and is over when all have come.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <kolo/collectives/engine/messages.h>
#include <kolo/collectives/engine/operation.h>
#include <kolo/collectives/engine/response_cache.h>

namespace kolo::detail {

/// What is to be done next on this rank; the same order on all ranks.
struct Decision {
  enum class Kind { execute, fail, all_joined, gone, end, broken, tune, end_of_batch };
  Kind kind = Kind::execute;
  OperationPtr operation = {};          // execute, fail: that of this rank, if it has submitted one
  RequestPtr request = {};              // execute: as agreed
  std::vector<std::int64_t> rows = {};  // execute: by rank and tensor, where ranks have their own
  int contributors = 0;                 // execute: the others have joined
  std::string name = {};                // fail
  Code code = Code::invalid_argument;   // fail, end, broken
  std::string text = {};                // fail, end, broken
  int rank = -1;                        // all_joined: the last; gone
  UnnamedCalls unnamed = {};            // all_joined: where all ranks go on counting
  Tuning tuning = {};                   // tune
};

/// Ranks are those of the set. One thread. It sends what it is told to by `send` and never waits.
class Negotiator {
 public:
  using Send = std::function<void(int to, const std::string& message)>;

  /// members: the job's numbers of the set's ranks, for messages.
  Negotiator(int rank, std::vector<int> members, std::int64_t cache_capacity, Send send);

  /// This rank is ready. Not again for a name until a decision on it was taken, which hands `operation` out.
  void submit(RequestPtr request, OperationPtr operation = nullptr);
  /// This rank's call of `name` failed before it could be submitted.
  void refuse(const std::string& name, const std::string& text);
  /// From now on this rank counts as ready for everything, until all have joined. unnamed: the calls that it
  /// has made; ranks that joined after different numbers of steps go on with the highest.
  void join(const UnnamedCalls& unnamed = {});
  /// Root only: this rank has left, and takes part in nothing that is not decided yet. What it has finished
  /// was decided before, so all ranks carry that out first.
  void gone(int rank);
  /// Root only: everything pending and to come on this set fails with this error.
  void end(Code code, const std::string& text);
  /// The communication of this set has failed on this rank: as end(), and what is being executed cannot be
  /// waited for.
  void give_up(Code code, const std::string& text);
  /// Root only.
  void tune(const Tuning& tuning) { batch_.tuning = tuning; }
  void receive(int from, std::string_view message);
  /// Sends what has become complete since the last time; on the root, decides.
  void flush();
  /// Those since the last time, in the agreed order, instead of what is in `decisions`.
  void take_decisions(std::vector<Decision>& decisions) {
    decisions.clear();
    decisions.swap(decisions_);
  }

  /// This rank has submitted an operation of this name, of which nothing has been decided.
  bool is_undecided(const std::string& name) const;
  bool has_undecided() const { return own_bits_set_ > 0 || !own_.empty(); }
  /// Later decisions hand no operations out any more.
  void drop_operations();

  bool is_root() const { return rank_ == 0; }
  bool has_joined() const { return joined_; }
  const ResponseCache& cache() const { return cache_; }
  struct Counts {
    std::int64_t messages = 0;  // sent by this rank
    std::int64_t bytes = 0;
    std::int64_t hits = 0;    // own submissions that were a bit
    std::int64_t misses = 0;  // that were not
  };
  const Counts& counts() const { return counts_; }

 private:
  using Mask = std::uint32_t;  // of participants: the children, and behind them this rank itself
  struct Own {
    RequestPtr request;
    OperationPtr operation;
  };
  struct Entry {
    Tally tally;
    Mask ready = 0;
  };
  struct Refused {
    Refusal refusal;
    bool come = false;  // this rank has come to the round
  };
  struct Held {
    Own own;  // empty: a refusal
    std::string name, text;
  };
  // What a slot meant before the epoch in which its name had to leave it.
  struct Retired {
    int slot = 0;
    std::int64_t until = 0;
    ResponseCache::Entry entry;
  };

  int size() const { return static_cast<int>(members_.size()); }
  int self() const { return children_; }
  Mask all() const { return (Mask{1} << (children_ + 1)) - 1; }
  int participant_of(int from) const;
  int rank_of(int participant) const;
  int slot_for(const Request& request);
  void set_own_bit(int slot);
  void keep(Own own);
  Own take_own(int slot);
  Own take_own(const std::string& name);
  void mark(int participant, Tally tally);
  void take_bits_of(int slot);
  Tally tally_of_bit(const ResponseCache::Entry& known, int participant) const;
  const ResponseCache::Entry* meaning(int slot, std::int64_t epoch) const;
  void complete_if_ready(const std::string& name);
  void completed(Tally tally);
  void decide(const Tally& tally);
  void level_bits();
  void take_ready_bits();
  void note_joined(int participant, int rank);
  void note_unnamed(const UnnamedCalls& calls);
  void give_up_bits();
  void receive_upward(int participant, Upward up);
  void open_refused(const Refusal& refusal);
  void send_to_children(const std::string& message);
  void send(int to, const std::string& message);
  void carry_out(const Batch& batch);
  void execute(Own own, const RequestPtr& request, const std::vector<std::int64_t>& rows, int contributors);
  void retire(int slot);
  void forget_retired(int participant, std::int64_t epoch);
  void fail(const std::string& name, Code code, const std::string& text, Own own);
  void fail_refused(const Refusal& refusal, Own own);
  void apply(const Refusal& refusal);
  void round_is_over(const std::string& name);
  void all_have_joined(int last, const UnnamedCalls& unnamed);

  const int rank_;
  const std::vector<int> members_;
  const int children_;
  const Send send_;
  ResponseCache cache_;
  std::int64_t epoch_ = 0;
  Upward up_;                  // to be sent
  Batch batch_;                // root only: to be decided
  std::vector<SlotSet> bits_;  // by participant: ready, and not told to the parent yet
  bool bits_changed_ = false;
  std::vector<Retired> retired_;                  // of which bits may be on their way, oldest first
  std::vector<std::int64_t> heard_;               // by child: the epoch of its last message
  std::unordered_map<std::string, Entry> table_;  // names that are on their way without a bit
  // This rank's own that are undecided: by slot where they are announced as a bit, else by name.
  std::vector<Own> own_bits_;
  std::int64_t own_bits_set_ = 0;
  std::unordered_map<std::string, Own> own_;
  std::unordered_map<std::string, Refused> refused_;
  std::deque<Held> held_;                // calls of the next round of a refused name
  std::vector<int> joined_below_;        // by participant: how many ranks there have joined
  std::vector<int> first_joined_below_;  // and which was the first
  Mask joined_mask_ = 0;                 // participants of which every rank has
  bool joined_ = false, any_joined_ = false;
  std::set<std::string> open_;  // root only: refused rounds that not all have come to
  int joined_in_all_ = 0;       // root only
  UnnamedCalls unnamed_ = {};   // root only: the most of those that have joined
  bool ended_ = false;          // a rank has gone, or end()
  std::vector<Decision> decisions_;
  Counts counts_;
};

}  // namespace kolo::detail
