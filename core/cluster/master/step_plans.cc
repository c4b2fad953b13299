#include <kolo/core/cluster/master/step_plans.h>

#include <chrono>
#include <exception>
#include <iterator>
#include <utility>

#include <kolo/core/base/log.h>
#include <kolo/core/cluster/waits.h>

namespace kolo::detail {

StepPlan::~StepPlan() {
  if (forgotten_) return;
  for (const RegisteredPart& part : parts_) {
    if (is_lost_(part.task)) continue;
    try {
      def::DeregisterGraphRequestDef request;
      request.set_session(session_);
      request.set_part(part.handle);
      part.worker->call<DeregisterGraph>(request, std::chrono::steady_clock::now() + std::chrono::seconds(2));
    } catch (const std::exception& error) {
      log_debug("a plan of session {} stays on {}: {}", session_, part.task, error.what());
    }
  }
}

std::shared_ptr<StepPlan> StepPlans::get(const Key& key,
                                         const std::function<std::shared_ptr<StepPlan>()>& make,
                                         const Deadline& deadline) {
  {
    const WakeOnStop wake(deadline.stop(), mutex_, changed_);
    MutexLock lock(mutex_);
    while (true) {
      const auto found = by_key_.find(key);
      if (found != by_key_.end()) {
        entries_.splice(entries_.begin(), entries_, found->second);
        return found->second->second;
      }
      if (being_made_.insert(key).second) break;
      wait_for_change(changed_, mutex_, deadline);
    }
  }
  std::shared_ptr<StepPlan> plan;
  std::exception_ptr failure;
  try {
    plan = make();
  } catch (...) {
    failure = std::current_exception();
  }
  Entries dropped;  // destroyed without the lock: that is talk with tasks
  {
    MutexLock lock(mutex_);
    being_made_.erase(key);
    changed_.notify_all();
    if (plan) {
      entries_.emplace_front(key, plan);
      by_key_[key] = entries_.begin();
    }
    if (entries_.size() > kMostPlans) {
      by_key_.erase(entries_.back().first);
      dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
    }
  }
  if (failure) std::rethrow_exception(failure);
  return plan;
}

void StepPlans::forget_all() {
  Entries dropped;
  {
    MutexLock lock(mutex_);
    for (auto& [key, plan] : entries_) plan->forget();
    by_key_.clear();
    dropped.swap(entries_);
  }
}

}  // namespace kolo::detail
