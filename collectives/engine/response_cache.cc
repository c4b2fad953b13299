#include <kolo/collectives/engine/response_cache.h>

#include <algorithm>
#include <utility>

namespace kolo::detail {

int ResponseCache::find(const std::string& name) const {
  const auto found = slot_of_.find(name);
  return found == slot_of_.end() ? -1 : found->second;
}

int ResponseCache::find(const Request& own, int rank) const {
  const int hint = own.slot_hint;
  if (hint >= 0 && has(hint) && entry(hint).same == &own) return hint;
  const int slot = find(own.name);
  if (slot < 0) return -1;
  const Entry& known = entry(slot);
  if (!agree(own, *known.request)) return -1;
  if (!known.rows.empty() && !own.has_rows(known.rows, rank)) return -1;
  own.slot_hint = slot;
  known.same = &own;
  return slot;
}

void ResponseCache::touch(int slot) { entries_[slot].executed = ++executions_; }

int ResponseCache::slot_to_evict(const std::string& name) const {
  const bool is_full = capacity_ > 0 && free_.empty() && slots() == capacity_;
  return is_full && find(name) < 0 ? oldest_slot() : -1;
}

void ResponseCache::insert(RequestPtr request, std::vector<std::int64_t> rows, std::int64_t epoch) {
  if (capacity_ == 0) return;
  if (const int oldest = slot_to_evict(request->name); oldest >= 0)
    erase(std::string(entries_[oldest].request->name), epoch);
  int slot = find(request->name);
  if (slot < 0) {
    slot = free_slot();
    slot_of_[request->name] = slot;
  }
  entries_[slot] = {std::move(request), std::move(rows), epoch};
  touch(slot);
}

void ResponseCache::erase(const std::string& name, std::int64_t epoch) {
  const auto found = slot_of_.find(name);
  if (found == slot_of_.end()) return;
  const int slot = found->second;
  entries_[slot] = {nullptr, {}, epoch};
  free_.push_back(slot);
  slot_of_.erase(found);
}

int ResponseCache::free_slot() {
  if (free_.empty()) {
    entries_.emplace_back();
    return slots() - 1;
  }
  const int slot = free_.back();
  free_.pop_back();
  return slot;
}

int ResponseCache::oldest_slot() const {
  const auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                       [](const auto& a, const auto& b) { return a.executed < b.executed; });
  return static_cast<int>(oldest - entries_.begin());
}

}  // namespace kolo::detail
