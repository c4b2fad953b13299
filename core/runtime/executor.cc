#include <kolo/core/runtime/executor.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/runtime/branches.h>

namespace kolo {
namespace {

using Clock = std::chrono::steady_clock;

// The state of one run. Nodes at position p of the plan wait in a heap by p, so that whoever looks for work
// takes the one that the plan's order, and with it the reuse of memory, favours.
class Step {
 public:
  Step(const Plan& plan, Frame& frame, const StepOptions& options)
      : frame_(frame),
        options_(options),
        nodes_(plan.nodes()),
        pending_(frame.pending.get()),
        ready_(frame.ready) {
    ready_.clear();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      pending_[i].store(nodes_[i].pending,
                        std::memory_order_relaxed);  // published by the start of the workers
      if (nodes_[i].pending == 0) ready_.push_back(static_cast<int>(i));
    }
    std::make_heap(ready_.begin(), ready_.end(), std::greater<>());
    unfinished_ = static_cast<int>(nodes_.size());
    if (options_.trace != nullptr) started_.resize(nodes_.size());
  }

  void run() {
    const int helpers = options_.pool == nullptr ? 0 : options_.pool->size();
    {
      MutexLock lock(mutex_);
      helpers_running_ = helpers;
    }
    for (int i = 1; i <= helpers; ++i) options_.pool->schedule([this, i] { help(i); });
    work(0);
    MutexLock lock(mutex_);
    while (helpers_running_ > 0) changed_.wait(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void help(int lane) {
    work(lane);
    // Notified under the lock: the step may be destroyed as soon as the caller sees the count at 0.
    MutexLock lock(mutex_);
    --helpers_running_;
    changed_.notify_all();
  }

  void work(int lane) {
    set_intra_op_threads(options_.intra_op_threads);  // OpenMP keeps the number for each thread
    while (true) {
      int node = next(lane);
      if (node < 0) return;
      while (node >= 0) node = run_node(node, lane);
    }
  }

  // The ready node that comes first; −1 when the step is over.
  int next(int lane) {
    MutexLock lock(mutex_);
    while (true) {
      if (lane == 0 && error_ && !failure_told_ && under_way_ == asynchronous_) {
        tell_failure();
        continue;
      }
      if (is_over()) {
        changed_.notify_all();
        return -1;
      }
      if (!ready_.empty() && !error_) {
        std::pop_heap(ready_.begin(), ready_.end(), std::greater<>());
        const int node = ready_.back();
        ready_.pop_back();
        ++under_way_;
        return node;
      }
      ++idle_;
      changed_.wait(mutex_);
      --idle_;
    }
  }

  bool is_over() const KOLO_REQUIRES(mutex_) {
    return unfinished_ == 0 || (error_ && failure_told_ && under_way_ == 0);
  }

  // On the caller's thread, when no kernel runs any more: it may block, and it may write where kernels wrote.
  void tell_failure() KOLO_REQUIRES(mutex_) {
    failure_told_ = true;
    if (!options_.on_failure) return;
    const std::exception_ptr error = error_;
    mutex_.unlock();
    options_.on_failure(error);
    mutex_.lock();
  }

  // Runs the node; returns a successor to go on with, or −1.
  int run_node(int index, int lane) {
    const PlanNode& node = nodes_[index];
    if (node.is_conditional() && !happens(node, index, frame_)) return finish(index, true);
    const auto start = options_.trace != nullptr ? Clock::now() : Clock::time_point();
    try {
      for (const VariableStorage* variable : node.must_be_initialized)
        if (!variable->initialized.load())
          throw FailedPreconditionError("Attempting to use uninitialized value {}", variable->name);
      if (AsyncKernel* kernel = frame_.async_kernels[index]) {
        if (options_.trace != nullptr) started_[index] = start;
        kernel->start(frame_.contexts[index], {&Step::on_completion, this, index});
        // Only now: until it has returned, it runs. It may be complete already.
        count_asynchronous(+1);
        return -1;
      }
      if (node.runs_kernel) frame_.kernels[index]->compute(frame_.contexts[index]);
    } catch (...) {
      fail(index, std::current_exception());
      return -1;
    }
    if (options_.trace != nullptr && node.runs_kernel)
      record(index, fmt::format("{} thread {}", device_of(node), lane), start);
    return finish(index, true);
  }

  void count_asynchronous(int change) {
    MutexLock lock(mutex_);
    asynchronous_ += change;
    if (error_) changed_.notify_all();  // the caller's thread may wait for the last one to be started
  }

  static void on_completion(void* step, int node, std::exception_ptr error) {
    auto* self = static_cast<Step*>(step);
    self->count_asynchronous(-1);
    if (error) return self->fail(node, std::move(error));
    if (self->options_.trace != nullptr) self->record(node, "communication", self->started_[node]);
    self->finish(node, false);
  }

  // Counts down the successors. Keeps the first that became ready for this thread where `keep_one` says so:
  // for a chain that needs no lock at all.
  int finish(int index, bool keep_one) {
    int kept = -1;
    bool queued = false;
    for (const int successor : nodes_[index].successors) {
      if (pending_[successor].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      if (keep_one && kept < 0) {
        kept = successor;
        continue;
      }
      MutexLock lock(mutex_);
      push(successor);
      queued = true;
    }
    MutexLock lock(mutex_);
    --unfinished_;
    --under_way_;
    if (kept >= 0) {
      if (error_) kept = -1;
      else kept = prefer_older(kept);
    }
    if (unfinished_ == 0 || error_ || (queued && idle_ > 0)) changed_.notify_all();
    return kept;
  }

  // Keeps to the plan's order where an older node waits: it is first for a reason.
  int prefer_older(int node) KOLO_REQUIRES(mutex_) {
    ++under_way_;
    if (ready_.empty() || ready_.front() > node) return node;
    push(node);
    std::pop_heap(ready_.begin(), ready_.end(), std::greater<>());
    const int older = ready_.back();
    ready_.pop_back();
    return older;
  }

  void push(int node) KOLO_REQUIRES(mutex_) {
    ready_.push_back(node);
    std::push_heap(ready_.begin(), ready_.end(), std::greater<>());
  }

  void fail(int index, std::exception_ptr cause) {
    std::exception_ptr error = described(index, std::move(cause));
    MutexLock lock(mutex_);
    if (!error_) error_ = error;
    --unfinished_;
    --under_way_;
    changed_.notify_all();
  }

  std::exception_ptr described(int index, std::exception_ptr cause) const {
    const PlanNode& node = nodes_[index];
    try {
      std::rethrow_exception(std::move(cause));
    } catch (const std::exception& error) {
      try {
        throw_error(code_of(error),
                    fmt::format("{} [node \"{}\", {} on {}]", error.what(), node.name, node.op, node.device));
      } catch (...) {
        return std::current_exception();
      }
    } catch (...) {
      return std::current_exception();
    }
  }

  static std::string device_of(const PlanNode& node) {
    const auto at = node.device.rfind("device:");
    return at == std::string::npos ? node.device : node.device.substr(at + 7);
  }

  void record(int index, std::string lane, Clock::time_point start) {
    const auto end = Clock::now();
    MutexLock lock(mutex_);
    options_.trace->events.push_back({nodes_[index].name, nodes_[index].op, std::move(lane), start, end});
  }

  Frame& frame_;
  const StepOptions& options_;
  const std::vector<PlanNode>& nodes_;
  std::atomic<int>* const pending_;         // the last decrement acquires what the others released
  std::vector<Clock::time_point> started_;  // of asynchronous nodes, while tracing

  Mutex mutex_;
  CondVar changed_;
  std::vector<int>& ready_ KOLO_GUARDED_BY(mutex_);
  int unfinished_ KOLO_GUARDED_BY(mutex_) = 0;
  int under_way_ KOLO_GUARDED_BY(mutex_) = 0;
  int asynchronous_ KOLO_GUARDED_BY(mutex_) = 0;  // of those under way, the ones that were started
  int idle_ KOLO_GUARDED_BY(mutex_) = 0;
  int helpers_running_ KOLO_GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ KOLO_GUARDED_BY(mutex_);
  bool failure_told_ KOLO_GUARDED_BY(mutex_) = false;
};

}  // namespace

void run_step(const Plan& plan, Frame& frame, const StepOptions& options) {
  if (options.trace != nullptr) {
    options.trace->arena_bytes = plan.memory().arena_bytes;
    options.trace->unplanned_bytes = plan.memory().unplanned_bytes;
  }
  Step(plan, frame, options).run();
}

}  // namespace kolo
