#include <kolo/core/runtime/plan_cache.h>

namespace kolo::detail {

std::shared_ptr<Plan> PlanCache::find(const Key& key) {
  MutexLock lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

void PlanCache::insert(const Key& key, std::shared_ptr<Plan> plan) {
  Entries dropped;  // destroyed without the lock: freeing a plan's memory takes its time
  MutexLock lock(mutex_);
  entries_.emplace_front(key, std::move(plan));
  by_key_[key] = entries_.begin();
  if (entries_.size() <= kMostPlans) return;
  by_key_.erase(entries_.back().first);
  dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
}

void PlanCache::clear() {
  Entries dropped;
  MutexLock lock(mutex_);
  by_key_.clear();
  dropped.swap(entries_);
}

}  // namespace kolo::detail
