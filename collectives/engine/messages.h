// What travels in a negotiation: up the tree what is ready, down the tree what is to be done.
#pragma once

#include <boost/dynamic_bitset.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/collectives/engine/operation.h>
#include <kolo/core/base/error.h>

namespace kolo::detail {

/// Slots of the response cache, by their numbers. Those beyond its size are not in it.
using SlotSet = boost::dynamic_bitset<std::uint64_t>;

inline void add_slot(SlotSet& set, int slot) {
  const auto place = static_cast<std::size_t>(slot);
  if (place >= set.size()) set.resize((place / SlotSet::bits_per_block + 1) * SlotSet::bits_per_block);
  set.set(place);
}
inline bool has_slot(const SlotSet& set, int slot) {
  const auto place = static_cast<std::size_t>(slot);
  return place < set.size() && set.test(place);
}
/// Ascending.
template <typename Function>
void for_each_slot(const SlotSet& set, const Function& function) {
  for (auto slot = set.find_first(); slot != SlotSet::npos; slot = set.find_next(slot))
    function(static_cast<int>(slot));
}

/// A rank cannot take part in the call of this name.
struct Refusal {
  std::string name;
  int rank = 0;  // of the set
  std::string text;
};

struct Failure {
  std::string name;
  Code code = Code::invalid_argument;
  std::string text;
};

struct Tuning {
  std::int64_t fusion_bytes = 0;
  double cycle_ms = 0;
};

/// From a rank to its parent.
struct Upward {
  std::int64_t epoch = 0;      // batches that the sender has carried out; bits mean the slots of that moment
  SlotSet ready;               // known names for which every rank at or below the sender is ready
  std::vector<Tally> tallies;  // the same for other names
  std::vector<Refusal> refusals;
  std::vector<int> joined;
  UnnamedCalls unnamed = {};      // where ranks have joined: the most that one of them has made of each kind
  std::optional<Failure> broken;  // the set's communication

  bool empty() const {
    return !ready.any() && tallies.empty() && refusals.empty() && joined.empty() && !broken;
  }
  std::string to_bytes() const;
  static Upward from_bytes(std::string_view bytes);
};

/// From the root to all ranks, which carry it out in the order of the fields.
struct Batch {
  struct Execution {
    RequestPtr request;
    std::vector<std::int64_t> rows;  // by rank and tensor, where ranks have their own
    int contributors = 0;
  };
  SlotSet known;                      // names of the cache to execute, by slot
  std::vector<Execution> executions;  // then these
  std::vector<Failure> failures;      // names on which the ranks disagree
  std::vector<Refusal> refusals;      // rounds that cannot succeed any more
  std::vector<std::string> over;      // refused rounds that every rank has come to
  int all_joined = -1;                // every rank has joined; this one was the last
  UnnamedCalls unnamed = {};          // then: where all go on counting
  int gone = -1;                      // this rank takes part in nothing more
  std::optional<Failure> end;         // of everything on this set
  std::optional<Failure> broken;      // the same, and at once
  std::optional<Tuning> tuning;       // from the next execution on

  bool empty() const {
    return !known.any() && executions.empty() && failures.empty() && refusals.empty() && over.empty() &&
           all_joined < 0 && gone < 0 && !end && !broken && !tuning;
  }
  std::string to_bytes() const;
  static Batch from_bytes(std::string_view bytes);
};

}  // namespace kolo::detail
