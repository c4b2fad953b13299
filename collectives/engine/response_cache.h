// What was agreed before: a name that comes again with the same request is one bit in a message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <kolo/collectives/engine/operation.h>

namespace kolo::detail {

/// All ranks of a set make the same changes in the same order, so that a slot's number means the same on all.
/// One thread.
class ResponseCache {
 public:
  struct Entry {
    RequestPtr request;              // as agreed; rows are those of the lowest rank
    std::vector<std::int64_t> rows;  // by rank and tensor, where ranks have their own
    std::int64_t changed = 0;        // the epoch in which the slot got this content or lost its last one
    std::int64_t executed = 0;       // grows with each execution of any name
    // The own request that was last found to be the same.
    mutable const Request* same = nullptr;
  };

  /// capacity: names; 0 = off.
  explicit ResponseCache(std::int64_t capacity) : capacity_(capacity) {}

  /// The slot of a name whose agreed request is the same as this rank's own; −1 if there is none.
  int find(const Request& own, int rank) const;
  /// −1 if the name is not here.
  int find(const std::string& name) const;
  const Entry& entry(int slot) const { return entries_.at(static_cast<std::size_t>(slot)); }
  bool has(int slot) const { return slot < slots() && entries_[static_cast<std::size_t>(slot)].request; }
  int slots() const { return static_cast<int>(entries_.size()); }

  /// The slot's name was executed.
  void touch(int slot);
  /// The slot that insert() would take from another name, which was executed longest ago; −1 if it need not.
  /// It looks at all slots then.
  int slot_to_evict(const std::string& name) const;
  /// Replaces what the name had; else takes a free slot, or that one.
  void insert(RequestPtr request, std::vector<std::int64_t> rows, std::int64_t epoch);
  void erase(const std::string& name, std::int64_t epoch);

 private:
  int free_slot();
  int oldest_slot() const;

  const std::int64_t capacity_;
  std::vector<Entry> entries_;
  std::int64_t executions_ = 0;
  std::vector<int> free_;
  std::unordered_map<std::string, int> slot_of_;
};

}  // namespace kolo::detail
