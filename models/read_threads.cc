#include <kolo/models/read_ahead.h>

#include <pthread.h>

#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include <kolo/core/base/mutex.h>

namespace kolo::models {

struct ReadThreads::State {
  // Takes numbers until none is left.
  void work_off() KOLO_EXCLUDES(mutex) {
    while (true) {
      std::int64_t number = 0;
      const std::function<void(std::int64_t)>* task = nullptr;
      {
        MutexLock lock(mutex);
        if (next == count) return;
        number = next++;
        task = work;
      }
      std::exception_ptr thrown;
      try {
        (*task)(number);
      } catch (...) {
        thrown = std::current_exception();
      }
      bool last = false;
      {
        MutexLock lock(mutex);
        if (thrown && (!error || number < failed)) {
          error = std::move(thrown);
          failed = number;
        }
        last = ++done == count;
      }
      if (last) changed.notify_all();
    }
  }

  void wait_for_work() KOLO_EXCLUDES(mutex) {
    while (true) {
      {
        MutexLock lock(mutex);
        while (next == count && !stopping) changed.wait(mutex);
        if (stopping) return;
      }
      work_off();
    }
  }

  Mutex mutex;
  CondVar changed;
  const std::function<void(std::int64_t)>* work KOLO_GUARDED_BY(mutex) = nullptr;
  std::int64_t count KOLO_GUARDED_BY(mutex) = 0, next KOLO_GUARDED_BY(mutex) = 0,
                     done KOLO_GUARDED_BY(mutex) = 0;
  std::int64_t failed KOLO_GUARDED_BY(mutex) = 0;
  std::exception_ptr error KOLO_GUARDED_BY(mutex);
  bool stopping KOLO_GUARDED_BY(mutex) = false;
  std::vector<std::thread> threads;
};

ReadThreads::ReadThreads(int threads) : state_(std::make_unique<State>()) {
  for (int i = 1; i < threads; ++i) {
    try {
      state_->threads.emplace_back([state = state_.get()] { state->wait_for_work(); });
    } catch (const std::system_error&) {
      break;  // fewer do the same work
    }
    pthread_setname_np(state_->threads.back().native_handle(), "kolo-decode");
  }
}

ReadThreads::~ReadThreads() {
  {
    MutexLock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

void ReadThreads::run(std::int64_t count, const std::function<void(std::int64_t)>& work) {
  State& state = *state_;
  {
    MutexLock lock(state.mutex);
    state.work = &work;
    state.count = count;
    state.next = state.done = 0;
    state.error = nullptr;
  }
  state.changed.notify_all();
  state.work_off();
  std::exception_ptr error;
  {
    MutexLock lock(state.mutex);
    while (state.done < state.count) state.changed.wait(state.mutex);
    error = std::move(state.error);
    state.error = nullptr;
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace kolo::models
