// What a master knows of whether the other tasks live: one watch on each.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/worker/peers.h>

namespace kolo::detail {

/// The number by which a task that was restarted is told from what it was before: that of its CPU:0.
std::uint64_t incarnation_of(const TaskStatus& status);

/// Any thread. Tasks are watched from the first call that names them on.
class TaskWatches {
 public:
  /// on_lost: when a watch has ended, with the reason; must not block.
  TaskWatches(std::shared_ptr<Peers> peers,
              std::function<void(const std::string& task, std::exception_ptr why)> on_lost);
  /// Ends all watches and waits for their last word.
  ~TaskWatches();
  TaskWatches(const TaskWatches&) = delete;
  TaskWatches& operator=(const TaskWatches&) = delete;

  /// Watches the task if nobody does. Does not wait.
  void watch(const std::string& task) KOLO_EXCLUDES(state_->mutex);
  /// The incarnation of the task, as its watch has told it; asks the task itself where none stands, and
  /// watches it again. Throws what status() throws for one that is away.
  std::uint64_t look(const std::string& task, Deadline deadline) KOLO_EXCLUDES(state_->mutex);
  /// False once its watch has ended, until it is watched again.
  bool is_lost(const std::string& task) KOLO_EXCLUDES(state_->mutex);

 private:
  struct Watched {
    std::shared_ptr<Call> call;
    std::uint64_t number = 0;       // of the watch: what an older one says counts no more
    std::uint64_t incarnation = 0;  // 0: it has not said so yet
    bool lost = false;
  };
  // Shared with the watches, whose last word may come late.
  struct State {
    Mutex mutex;
    CondVar changed;
    std::map<std::string, Watched> tasks KOLO_GUARDED_BY(mutex);
    std::uint64_t watches KOLO_GUARDED_BY(mutex) = 0;
    int open KOLO_GUARDED_BY(mutex) = 0;
    bool closed KOLO_GUARDED_BY(mutex) = false;
    std::function<void(const std::string&, std::exception_ptr)> on_lost;
  };
  static void hear(const std::shared_ptr<State>& state, const std::string& task, std::uint64_t number,
                   const TaskStatus* status, const std::exception_ptr& ended);

  const std::shared_ptr<Peers> peers_;
  const std::shared_ptr<State> state_;
};

}  // namespace kolo::detail
