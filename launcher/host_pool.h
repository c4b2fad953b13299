// Which hosts an elastic job runs on: a state for each host, and the rules by which it changes.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/launcher/hosts.h>

namespace kolo::launcher {

struct PoolRules {
  int min_ranks = 1;
  int max_ranks = std::numeric_limits<int>::max();
  int first_ranks = std::numeric_limits<int>::max();  // the most that the first start takes
  int spares = 0;                                     // hosts that stay unused until one is lost
  std::chrono::seconds least_cooling{10}, most_cooling{300};
  std::chrono::seconds grow_after{60};  // since the last start
};

/// A host of the list, and whether its agent answers.
struct SeenHost {
  Host host;
  bool answers = false;
  std::string why_not = {};  // in a few words
};

/// A host is in use, spare, cooling, about to go or absent. A lost host cools: for least_cooling, twice as
/// long after each further loss up to most_cooling, half as long after each ten minutes without one. A host
/// that answers and does not cool can be used; those in use keep their order, so that rank 0 stays where it
/// is. Knows no clock: every call says when it is made, none earlier than the one before. One thread.
class HostPool {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// All of `listed` are taken to be there until see() says otherwise.
  HostPool(const PoolRules& rules, const std::vector<Host>& listed);

  /// The list as it is now, in its order. A host that is not in it any more is absent and forgotten.
  void see(const std::vector<SeenHost>& list);
  /// The host is gone, or not fit to run ranks: it cools.
  void lose(std::string_view host, Time now);
  /// The host is about to go: it is not used until it has been away.
  void drain(std::string_view host);
  /// The program does not run with more ranks than these: no start takes more from now on.
  void limit_ranks(int most) { rules_.max_ranks = std::min(rules_.max_ranks, most); }
  /// A signal that a broken machine sends has ended a rank there. True if it is the second one within ten
  /// minutes, or a later one: the host then counts as lost.
  bool note_killed_rank(std::string_view host, Time now);
  /// True if min_ranks find room now without the hosts that count as lost for their killed ranks: others can
  /// take their place. False says that the program, and no host, is what such signals end.
  bool can_do_without_killers(Time now) const;

  /// The hosts of the next start, with the slots to use; they are in use from now on. Empty, and those in use
  /// stay so, where fewer than min_ranks would find room.
  std::vector<Host> choose(Time now);
  /// The hosts that choose() would add to those in use. Empty before grow_after has passed since the last
  /// choose(), or where they are less than one whole host.
  std::vector<Host> growth(Time now) const;

  /// What keeps a start from having min_ranks, as in `2 more ranks: node3 cools for 40 s, node4 does not
  /// answer`.
  std::string missing(Time now) const;
  /// The listed hosts that cannot be used, and why, as above; "" for none.
  std::string unusable(Time now) const;
  /// The ranks for which there is room now.
  int available_ranks(Time now) const;
  /// Every host of the list, whether it can be used or not.
  std::vector<Host> listed() const;
  /// True if every host of the list is in use: none can come that is known now.
  bool uses_all() const;
  /// How long this host cools; 0 s for one that does not.
  std::chrono::seconds cools_for(std::string_view host, Time now) const;
  const std::vector<Host>& in_use() const { return in_use_; }

 private:
  struct Entry {
    Host host;
    bool answers = true;
    bool goes = false;  // soon
    Time cools_until = Time::min();
    std::chrono::seconds next_cooling;
    Time last_loss = Time::min();
    std::deque<Time> killed_ranks = {};
  };

  Entry* find(std::string_view host);
  const Entry* find(std::string_view host) const;
  bool is_usable(const Entry& entry, Time now) const;
  static bool kills_ranks(const Entry& entry, Time now);
  std::vector<Host> best(Time now, int most_ranks) const;

  PoolRules rules_;
  const int first_hosts_;
  std::vector<Entry> entries_;  // in the list's order
  std::vector<Host> in_use_;    // in the order of their ranks
  Time last_start_ = Time::min();
  bool started_ = false;
};

}  // namespace kolo::launcher
