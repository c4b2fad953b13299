#include <kolo/core/cluster/master/find_tasks.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/base/text.h>
#include <kolo/core/cluster/waits.h>

#include <kolo/core/cluster/rpc/messages_internal.h>

namespace kolo::detail {
namespace {

using Clock = std::chrono::steady_clock;

void check_status(const TaskStatus& status, const std::string& task, const std::string& address,
                  const FindTasksOptions& options) {
  if (status.version != options.version)
    throw FailedPreconditionError("{} ({}) is kolo {}, and this is kolo {}; all tasks need the same version",
                                  address, task, status.version, options.version);
  if (status.task != task || status.cluster_fingerprint != options.cluster_fingerprint)
    throw FailedPreconditionError("{} is {} of another cluster", address, status.task);
}

// What may be different in a second: the task is starting, or its host is not reached yet.
bool may_pass(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code() == Code::unavailable || e.code() == Code::deadline_exceeded ||
           e.code() == Code::cancelled || e.code() == Code::unknown;
  } catch (...) {
    return false;
  }
}

// One search. The threads that ask, one for each task, and the caller, who waits.
class Search {
 public:
  Search(Peers& peers, const std::vector<std::string>& tasks, const FindTasksOptions& options,
         const Deadline& deadline)
      : peers_(peers), options_(options), deadline_(deadline), missing_(tasks.begin(), tasks.end()) {}

  std::map<std::string, TaskStatus> run() {
    const WakeOnStop wake(deadline_.stop(), mutex_, changed_);
    std::set<std::string> tasks;
    {
      MutexLock lock(mutex_);
      tasks = missing_;
    }
    std::vector<std::jthread> threads;
    for (const std::string& task : tasks) threads.emplace_back([this, task] { ask(task); });
    const std::exception_ptr failure = wait();
    end();
    threads.clear();
    if (failure) std::rethrow_exception(failure);
    MutexLock lock(mutex_);
    return std::move(found_);
  }

 private:
  void ask(const std::string& task) {
    const std::string address = peers_.address(task);
    while (true) {
      std::exception_ptr error;
      try {
        TaskStatus status =
            from_def(peers_.worker(task)->call<GetStatus>({}, deadline_.at_most(options_.attempt)));
        check_status(status, task, address, options_);
        MutexLock lock(mutex_);
        found_[task] = std::move(status);
        missing_.erase(task);
        changed_.notify_all();
        return;
      } catch (...) {
        error = std::current_exception();
      }
      const auto next = Clock::now() + options_.retry;
      MutexLock lock(mutex_);
      last_errors_[task] = message_of(error);
      if (!may_pass(error)) {
        if (!failure_) failure_ = error;
        changed_.notify_all();
        return;
      }
      while (!over_ && Clock::now() < next) changed_.wait_until(mutex_, next);
      if (over_) return;
    }
  }

  std::exception_ptr wait() {
    auto warning = Clock::now() + options_.warning;
    while (true) {
      std::vector<std::string> lines;
      {
        MutexLock lock(mutex_);
        if (failure_) return failure_;
        if (missing_.empty()) return nullptr;
        if (deadline_.stop().stop_requested())
          return std::make_exception_ptr(CancelledError("the session was stopped while it was created"));
        const auto now = Clock::now();
        if (deadline_ && now >= *deadline_) return missing_error();
        if (now < warning) {
          changed_.wait_until(mutex_, deadline_ ? std::min(warning, *deadline_) : warning);
          continue;
        }
        warning += options_.warning;
        for (const std::string& task : missing_) lines.push_back(line(task));
      }
      for (const std::string& line : lines)
        log_info("CreateSession still waiting for response from worker: {}", line);
    }
  }

  void end() {
    MutexLock lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

  std::string line(const std::string& task) KOLO_REQUIRES(mutex_) {
    const auto error = last_errors_.find(task);
    return fmt::format("{} ({}: {})", task, peers_.address(task),
                       error == last_errors_.end() ? "no answer yet" : error->second);
  }
  std::exception_ptr missing_error() KOLO_REQUIRES(mutex_) {
    std::string tasks;
    for (const std::string& task : missing_) tasks += (tasks.empty() ? "" : ", ") + line(task);
    return std::make_exception_ptr(
        DeadlineExceededError("CreateSession still waiting for response from worker: {}", tasks));
  }

  Peers& peers_;
  const FindTasksOptions& options_;
  const Deadline deadline_;
  Mutex mutex_;
  CondVar changed_;
  bool over_ KOLO_GUARDED_BY(mutex_) = false;
  std::set<std::string> missing_ KOLO_GUARDED_BY(mutex_);
  std::map<std::string, std::string> last_errors_ KOLO_GUARDED_BY(mutex_);
  std::map<std::string, TaskStatus> found_ KOLO_GUARDED_BY(mutex_);
  std::exception_ptr failure_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace

std::map<std::string, TaskStatus> find_tasks(Peers& peers, const std::vector<std::string>& tasks,
                                             const FindTasksOptions& options, const Deadline& deadline) {
  return Search(peers, tasks, options, deadline).run();
}

}  // namespace kolo::detail
