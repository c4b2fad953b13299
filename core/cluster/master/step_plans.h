// The steps of a session as they stand registered on its tasks, by what was asked for.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/call.h>
#include <kolo/core/cluster/master/master_step.h>
#include <kolo/core/runtime/step_request.h>

namespace kolo::detail {

/// Registered once, run any number of times. Its parts are deregistered with its last owner, but for those of
/// tasks that are away.
class StepPlan {
 public:
  StepPlan(std::string session, std::function<bool(const std::string& task)> is_lost)
      : session_(std::move(session)), is_lost_(std::move(is_lost)) {}
  ~StepPlan();
  StepPlan(const StepPlan&) = delete;
  StepPlan& operator=(const StepPlan&) = delete;

  /// Only while it is made.
  void add(RegisteredPart part) { parts_.push_back(std::move(part)); }
  /// The master's own last.
  const std::vector<RegisteredPart>& parts() const { return parts_; }
  /// The session goes from all tasks, and the parts with it.
  void forget() { forgotten_ = true; }

 private:
  const std::string session_;
  const std::function<bool(const std::string&)> is_lost_;
  std::vector<RegisteredPart> parts_;
  std::atomic<bool> forgotten_{false};
};

/// Keeps the plans used last. Any thread.
class StepPlans {
 public:
  using Key = PlanCache::Key;
  static constexpr std::size_t kMostPlans = PlanCache::kMostPlans;

  /// The plan for `key`; `make` makes it if there is none, without a lock: it talks to tasks. Who asks for
  /// the same key meanwhile waits for it, and makes it himself where that has failed. Throws
  /// DeadlineExceededError `Timed out waiting for notification` and CancelledError out of that wait, and what
  /// `make` throws.
  std::shared_ptr<StepPlan> get(const Key& key, const std::function<std::shared_ptr<StepPlan>()>& make,
                                const Deadline& deadline = {}) KOLO_EXCLUDES(mutex_);
  /// Drops all without deregistering them.
  void forget_all() KOLO_EXCLUDES(mutex_);

 private:
  using Entries = std::list<std::pair<Key, std::shared_ptr<StepPlan>>>;

  Mutex mutex_;
  CondVar changed_;
  std::set<Key> being_made_ KOLO_GUARDED_BY(mutex_);
  Entries entries_ KOLO_GUARDED_BY(mutex_);  // the one used last in front
  std::map<Key, Entries::iterator> by_key_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::detail
