#include <kolo/core/cluster/master/task_watches.h>

#include <chrono>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

#include <kolo/core/cluster/rpc/messages_internal.h>

namespace kolo::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kRetry{1};
constexpr std::chrono::seconds kClosing{2};  // with a task whose watch stands

}  // namespace

std::uint64_t incarnation_of(const TaskStatus& status) {
  for (const DeviceAttributes& device : status.devices)
    if (device.name.ends_with("/device:CPU:0")) return device.incarnation;
  return status.devices.empty() ? 0 : status.devices.front().incarnation;
}

TaskWatches::TaskWatches(std::shared_ptr<Peers> peers,
                         std::function<void(const std::string&, std::exception_ptr)> on_lost)
    : peers_(std::move(peers)), state_(std::make_shared<State>()) {
  state_->on_lost = std::move(on_lost);
  keeper_ = std::jthread([this] { keep(); });
}

TaskWatches::~TaskWatches() {
  std::vector<std::shared_ptr<Call>> calls;
  {
    MutexLock lock(state_->mutex);
    state_->closed = true;
    state_->changed.notify_all();
    for (auto& [task, watched] : state_->tasks)
      if (watched.call) calls.push_back(std::move(watched.call));
  }
  for (const auto& call : calls) call->cancel();
  keeper_.join();
  // A transport that does not end its calls must not keep a server from stopping.
  const auto patience = Clock::now() + std::chrono::seconds(5);
  MutexLock lock(state_->mutex);
  while (state_->open > 0 && Clock::now() < patience) state_->changed.wait_until(state_->mutex, patience);
}

void TaskWatches::hear(const std::shared_ptr<State>& state, const std::string& task, std::uint64_t number,
                       const TaskStatus* status, const std::exception_ptr& ended) {
  bool lost = false;
  {
    MutexLock lock(state->mutex);
    Watched& watched = state->tasks[task];
    const bool current = watched.number == number && !state->closed;
    if (current && status != nullptr) {
      watched.incarnation = incarnation_of(*status);
      watched.lost = false;
    }
    lost = current && ended != nullptr;
    if (lost) {
      watched.open = false;
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

void TaskWatches::enter(const std::string& task) {
  {
    MutexLock lock(state_->mutex);
    ++state_->tasks[task].sessions;
  }
  watch(task);
}

void TaskWatches::leave(const std::string& task) {
  MutexLock lock(state_->mutex);
  --state_->tasks[task].sessions;
}

void TaskWatches::close_later(const std::string& task, const std::string& session) {
  MutexLock lock(state_->mutex);
  state_->tasks[task].left_over.push_back(session);
}

void TaskWatches::keep() {
  while (true) {
    std::vector<std::string> again, left_over;
    {
      const auto next = Clock::now() + kRetry;
      MutexLock lock(state_->mutex);
      while (!state_->closed && Clock::now() < next) state_->changed.wait_until(state_->mutex, next);
      if (state_->closed) return;
      for (const auto& [task, watched] : state_->tasks) {
        if (!watched.open && watched.sessions > 0) again.push_back(task);
        if (watched.stands() && !watched.left_over.empty()) left_over.push_back(task);
      }
    }
    for (const std::string& task : again) watch(task);
    for (const std::string& task : left_over) close_left_over(task);
  }
}

void TaskWatches::close_left_over(const std::string& task) {
  std::vector<std::string> sessions;
  {
    MutexLock lock(state_->mutex);
    sessions.swap(state_->tasks[task].left_over);
  }
  try {
    for (; !sessions.empty(); sessions.pop_back())
      peers_->worker(task)->call<DeleteWorkerSession>(of_session(sessions.back()), Clock::now() + kClosing);
  } catch (const std::exception& error) {
    log_debug("session {} stays on {}: {}", sessions.back(), task, error.what());
    for (const std::string& session : sessions) close_later(task, session);
  }
}

void TaskWatches::watch(const std::string& task) {
  std::uint64_t number = 0;
  {
    MutexLock lock(state_->mutex);
    Watched& watched = state_->tasks[task];
    if (state_->closed || watched.open) return;
    number = ++state_->watches;
    watched.number = number;
    watched.incarnation = 0;
    watched.open = true;
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
    if (keep && watched.number == number && watched.open) watched.call = call;
  }
  if (!keep) call->cancel();
}

std::uint64_t TaskWatches::look(const std::string& task, const Deadline& deadline) {
  {
    MutexLock lock(state_->mutex);
    const Watched& watched = state_->tasks[task];
    if (watched.stands()) return watched.incarnation;
  }
  const std::uint64_t incarnation =
      incarnation_of(from_def(peers_->worker(task)->call<GetStatus>({}, deadline)));
  watch(task);
  return incarnation;
}

bool TaskWatches::is_lost(const std::string& task) {
  MutexLock lock(state_->mutex);
  return state_->tasks[task].lost;
}

}  // namespace kolo::detail
