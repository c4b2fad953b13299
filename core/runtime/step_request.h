// What a run is asked for, looked up in the graph and checked; and the plans of a session, by what they were
// compiled for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/device/device_set.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/passes/prune.h>
#include <kolo/core/runtime/fetch.h>
#include <kolo/core/runtime/plan.h>

namespace kolo::detail {

/// Keeps the plans used last; one that is dropped lives on while a run holds it. Any thread.
class PlanCache {
 public:
  /// The fetches, the fed tensors, their shapes and which GPUs they lie on, as numbers.
  using Key = std::vector<std::int64_t>;
  static constexpr std::size_t kMostPlans = 64;

  /// The plan for `key`; `compile` makes it if there is none. One plan is compiled at a time, while other
  /// threads find those that are there: passes of a training step talk to other ranks.
  template <typename Compile>
  std::shared_ptr<Plan> get(const Key& key, const Compile& compile) KOLO_EXCLUDES(mutex_, compile_mutex_) {
    if (auto plan = find(key)) return plan;
    MutexLock compiling(compile_mutex_);
    if (auto plan = find(key)) return plan;
    std::shared_ptr<Plan> plan = compile();
    insert(key, plan);
    return plan;
  }
  void clear() KOLO_EXCLUDES(mutex_);

 private:
  using Entries = std::list<std::pair<Key, std::shared_ptr<Plan>>>;
  std::shared_ptr<Plan> find(const Key& key) KOLO_EXCLUDES(mutex_);
  void insert(const Key& key, std::shared_ptr<Plan> plan) KOLO_EXCLUDES(mutex_);

  Mutex compile_mutex_;
  Mutex mutex_;
  Entries entries_ KOLO_GUARDED_BY(mutex_);  // the one used last in front
  std::map<Key, Entries::iterator> by_key_ KOLO_GUARDED_BY(mutex_);
};

/// With nodes instead of names.
struct StepRequest {
  std::vector<Fetch> fetches;
  std::vector<Fetch> targets;
  Feeds feeds;
};

/// Throws as Session::run does for what does not fit the graph.
StepRequest checked_request(const Graph& graph, const std::vector<Fetch>& fetches, const Feeds& feeds,
                            const std::vector<Fetch>& targets);
/// The tensor that a feed replaces, checked against the graph.
Output checked_feed_target(const Graph& graph, const FeedTarget& target);
/// Throws InvalidArgumentError unless `value` can stand for `target`.
void check_feed_value(const Output& target, const Tensor& value);

/// devices: the session's, on which feeds may lie; nullptr: all lie on the host.
PlanCache::Key key_of(const StepRequest& request, const DeviceSet* devices = nullptr);
StepSignature signature_of(const StepRequest& request, const DeviceSet* devices = nullptr);
/// Throws InvalidArgumentError `Retval[<i>] does not have value` for a fetch of a branch that the run in
/// `frame` did not take.
void check_results(const Plan& plan, const Frame& frame, const StepRequest& request);

}  // namespace kolo::detail
