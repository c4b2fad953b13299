// What a master knows of whether the other tasks live: one watch on each.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/worker/peers.h>

namespace kolo::detail {

/// The number by which a task that was restarted is told from what it was before: that of its CPU:0.
std::uint64_t incarnation_of(const TaskStatus& status);

/// Any thread. Tasks are watched from the first call that names them on; one that is lost is watched again
/// each second while sessions have it: without a watch it takes its master for gone and closes their halves.
class TaskWatches {
 public:
  /// on_lost: when a watch has ended, with the reason; must not block.
  TaskWatches(std::shared_ptr<Peers> peers,
              std::function<void(const std::string& task, std::exception_ptr why)> on_lost);
  /// Ends all watches and waits for their last word.
  ~TaskWatches();
  TaskWatches(const TaskWatches&) = delete;
  TaskWatches& operator=(const TaskWatches&) = delete;

  /// A session has the task. Does not wait.
  void enter(const std::string& task) KOLO_EXCLUDES(state_->mutex);
  /// The session has it no more.
  void leave(const std::string& task) KOLO_EXCLUDES(state_->mutex);
  /// The session of that handle could not be closed on the task: it is when a watch stands again.
  void close_later(const std::string& task, const std::string& session) KOLO_EXCLUDES(state_->mutex);
  /// The incarnation of the task, as its watch has told it; asks the task itself where none stands, and
  /// watches it again. Throws what status() throws for one that is away.
  std::uint64_t look(const std::string& task, const Deadline& deadline) KOLO_EXCLUDES(state_->mutex);
  /// True once its watch has ended, until another one stands.
  bool is_lost(const std::string& task) KOLO_EXCLUDES(state_->mutex);

 private:
  struct Watched {
    bool stands() const { return open && incarnation != 0; }

    std::shared_ptr<Call> call;
    std::uint64_t number = 0;       // of the watch: what an older one says counts no more
    std::uint64_t incarnation = 0;  // 0: it has not said so yet
    bool open = false;              // the watch has not ended
    bool lost = false;
    int sessions = 0;
    std::vector<std::string> left_over;  // sessions, to be closed there
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
  /// Watches the task if nobody does.
  void watch(const std::string& task) KOLO_EXCLUDES(state_->mutex);
  void keep() KOLO_EXCLUDES(state_->mutex);
  void close_left_over(const std::string& task) KOLO_EXCLUDES(state_->mutex);
  static void hear(const std::shared_ptr<State>& state, const std::string& task, std::uint64_t number,
                   const TaskStatus* status, const std::exception_ptr& ended);

  const std::shared_ptr<Peers> peers_;
  const std::shared_ptr<State> state_;
  std::jthread keeper_;
};

}  // namespace kolo::detail
