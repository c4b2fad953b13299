#include <kolo/core/training/coordinator.h>

#include <pthread.h>

#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/base/text.h>

namespace kolo {
namespace {

bool is_cancellation(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CancelledError&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

class Coordinator::Impl {
 public:
  ~Impl() {
    stop_.request_stop();
    std::vector<std::jthread> threads;  // joined before anything goes that they use
    MutexLock lock(mutex_);
    for (Thread& thread : threads_) threads.push_back(std::move(thread.thread));
  }

  void start(const std::string& name, std::function<void(std::stop_token)> body) {
    MutexLock lock(mutex_);
    threads_.push_back({.name = name, .running = true, .thread = {}});
    const std::size_t number = threads_.size() - 1;
    try {
      threads_.back().thread =
          std::jthread([this, number, name, body = std::move(body)] { run(number, name, body); });
    } catch (const std::system_error& error) {
      threads_.pop_back();
      throw ResourceExhaustedError("no thread for \"{}\": {}", name, error.what());
    }
  }

  void request_stop(const std::exception_ptr& error) {
    const bool failed = error && note(error);
    if (error && !failed) log_warning("after the coordinator was stopped: {}", message_of(error));
    if (failed) failed_.request_stop();  // first: who is stopped asks whether it is for an error
    stop_.request_stop();
  }

  bool should_stop() const { return stop_.stop_requested(); }
  std::stop_token error_token() const { return failed_.get_token(); }

  void join(std::chrono::milliseconds grace) {
    stop_.request_stop();
    const auto deadline = std::chrono::steady_clock::now() + grace;
    MutexLock lock(mutex_);
    while (!running().empty())
      if (!ended_.wait_until(mutex_, deadline) && std::chrono::steady_clock::now() >= deadline) break;
    if (const std::string names = running(); !names.empty())
      throw FailedPreconditionError("Coordinator stopped with threads still running: {}", names);
  }

  std::exception_ptr take_error() {
    MutexLock lock(mutex_);
    return std::exchange(error_, nullptr);
  }

 private:
  struct Thread {
    std::string name;
    bool running;
    std::jthread thread;
  };

  void run(std::size_t number, const std::string& name, const std::function<void(std::stop_token)>& body) {
    block_stop_signals();
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    try {
      body(stop_.get_token());
    } catch (...) {
      const auto error = std::current_exception();
      if (!should_stop() || !is_cancellation(error)) request_stop(error);
    }
    MutexLock lock(mutex_);
    threads_[number].running = false;
    ended_.notify_all();
  }

  // False for an error that comes too late to be the training's.
  bool note(const std::exception_ptr& error) {
    MutexLock lock(mutex_);
    if (stop_.stop_requested() || has_failed_) return false;
    has_failed_ = true;
    error_ = error;
    return true;
  }

  std::string running() const KOLO_REQUIRES(mutex_) {
    std::string names;
    for (const Thread& thread : threads_)
      if (thread.running) names += (names.empty() ? "" : " ") + thread.name;
    return names;
  }

  std::stop_source stop_;
  std::stop_source failed_;
  Mutex mutex_;
  CondVar ended_;
  bool has_failed_ KOLO_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ KOLO_GUARDED_BY(mutex_);
  std::vector<Thread> threads_ KOLO_GUARDED_BY(mutex_);
};

Coordinator::Coordinator() : impl_(std::make_unique<Impl>()) {}
Coordinator::~Coordinator() = default;

void Coordinator::start(const std::string& name, std::function<void(std::stop_token)> body) {
  impl_->start(name, std::move(body));
}
void Coordinator::request_stop(const std::exception_ptr& error) { impl_->request_stop(error); }
bool Coordinator::should_stop() const { return impl_->should_stop(); }
void Coordinator::join(std::chrono::milliseconds grace) { impl_->join(grace); }
std::exception_ptr Coordinator::take_error() { return impl_->take_error(); }
std::stop_token Coordinator::error_token() const { return impl_->error_token(); }

}  // namespace kolo
