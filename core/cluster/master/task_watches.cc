#include <kolo/core/cluster/master/task_watches.h>

#include <chrono>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>

namespace kolo::detail {

std::uint64_t incarnation_of(const TaskStatus& status) {
  for (const DeviceAttributes& device : status.devices)
    if (device.name.ends_with("/device:CPU:0")) return device.incarnation;
  return status.devices.empty() ? 0 : status.devices.front().incarnation;
}

TaskWatches::TaskWatches(std::shared_ptr<Peers> peers,
                         std::function<void(const std::string&, std::exception_ptr)> on_lost)
    : peers_(std::move(peers)), state_(std::make_shared<State>()) {
  state_->on_lost = std::move(on_lost);
}

TaskWatches::~TaskWatches() {
  std::vector<std::shared_ptr<Call>> calls;
  {
    MutexLock lock(state_->mutex);
    state_->closed = true;
    for (auto& [task, watched] : state_->tasks)
      if (watched.call) calls.push_back(std::move(watched.call));
  }
  for (const auto& call : calls) call->cancel();
  // A transport that does not end its calls must not keep a server from stopping.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  MutexLock lock(state_->mutex);
  while (state_->open > 0 && std::chrono::steady_clock::now() < patience)
    state_->changed.wait_until(state_->mutex, patience);
}

void TaskWatches::hear(const std::shared_ptr<State>& state, const std::string& task, std::uint64_t number,
                       const TaskStatus* status, const std::exception_ptr& ended) {
  bool lost = false;
  {
    MutexLock lock(state->mutex);
    Watched& watched = state->tasks[task];
    const bool current = watched.number == number && !state->closed;
    if (current && status != nullptr) watched.incarnation = incarnation_of(*status);
    lost = current && ended != nullptr;
    if (lost) {
      watched.lost = true;
      watched.call.reset();
    }
  }
  // Counted as open until on_lost is over: the master behind it goes after its watches.
  if (lost) state->on_lost(task, ended);
  if (ended == nullptr) return;
  MutexLock lock(state->mutex);
  --state->open;
  state->changed.notify_all();
}

void TaskWatches::watch(const std::string& task) {
  std::uint64_t number = 0;
  {
    MutexLock lock(state_->mutex);
    Watched& watched = state_->tasks[task];
    if (state_->closed || (watched.number != 0 && !watched.lost)) return;
    number = ++state_->watches;
    watched = Watched{.call = nullptr, .number = number};
    ++state_->open;
  }
  std::shared_ptr<Call> call;
  try {
    call = peers_->worker(task)->watch(
        [state = state_, task, number](const TaskStatus* status, std::exception_ptr ended) {
          hear(state, task, number, status, ended);
        });
  } catch (...) {
    hear(state_, task, number, nullptr, std::current_exception());
    return;
  }
  bool keep = false;
  {
    MutexLock lock(state_->mutex);
    Watched& watched = state_->tasks[task];
    keep = !state_->closed;
    if (keep && watched.number == number && !watched.lost) watched.call = call;
  }
  if (!keep) call->cancel();
}

std::uint64_t TaskWatches::look(const std::string& task, Deadline deadline) {
  {
    MutexLock lock(state_->mutex);
    const Watched& watched = state_->tasks[task];
    if (watched.number != 0 && !watched.lost && watched.incarnation != 0) return watched.incarnation;
  }
  const std::uint64_t incarnation = incarnation_of(peers_->worker(task)->status(deadline));
  watch(task);
  return incarnation;
}

bool TaskWatches::is_lost(const std::string& task) {
  MutexLock lock(state_->mutex);
  return state_->tasks[task].lost;
}

}  // namespace kolo::detail
