// What holds between the threads of a step:
//
// 1. A node runs once. Whoever brings its count of pending inputs to 0 puts it into its own lane or into the
//    shared set, and the set gives it to one thread.
// 2. remaining_ is 0 only when all nodes have finished: a lane subtracts what it has run when it runs dry, an
//    asynchronous node subtracts itself, and both release their successors before.
// 3. The caller's sleep misses nothing: it sets caller_sleeps_ before it looks at the shared set, and share()
//    fills the set before it reads caller_sleeps_. Whoever brings remaining_ to 0, or fails, notifies under
//    mutex_.
// 4. The first error stays. It is there before failed_ is seen, and nobody takes a node who has seen failed_.
// 5. The step outlives those who use it: the caller leaves once the pool has been withdrawn and no
//    asynchronous node is started, and the last that one does is to say so under mutex_.
// 6. No kernel runs under mutex_. An outer step's mutex is taken before an inner one's.
#include <kolo/core/runtime/executor.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include <kolo/core/base/cycles.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/kernels/cancellable.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/runtime/look_for_others.h>
#include <kolo/core/runtime/node_error.h>
#include <kolo/core/runtime/node_log.h>
#include <kolo/core/runtime/plan.h>
#include <kolo/core/runtime/step_streams.h>
#include <kolo/core/runtime/stream_kernels.h>

namespace kolo {
namespace {

using Clock = std::chrono::steady_clock;
using Lane = StepMemory::Lane;

// How often a caller that has nothing to run asks GPUs whether they have failed: nobody else does before the
// step's end, which may wait for a node of the host that has nothing to do with them.
constexpr std::chrono::seconds kStreamsAskedEvery(1);

class Step;
// What the calling thread works for. A step that it begins meanwhile, an iteration of a loop, is part of it.
thread_local Step* step_of_thread = nullptr;

class WorksFor {
 public:
  /// busy: what counts the threads that do so; may be null.
  WorksFor(Step& step, std::atomic<int>* busy) : before_(std::exchange(step_of_thread, &step)), busy_(busy) {
    if (busy_ != nullptr) ++*busy_;
  }
  ~WorksFor() {
    if (busy_ != nullptr) --*busy_;
    step_of_thread = before_;
  }
  WorksFor(const WorksFor&) = delete;
  WorksFor& operator=(const WorksFor&) = delete;

 private:
  Step* before_;
  std::atomic<int>* busy_;
};

// The state of one run. A thread that takes part has a lane: the nodes it keeps for itself, without a lock.
// What any thread may run is in a set that needs no lock either. The mutex is for sleeping, for failures and
// for asynchronous nodes.
class Step final : public WorkSource {
 public:
  Step(const Plan& plan, Frame& frame, const StepOptions& options)
      : nodes_(plan.nodes()),
        table_(plan.table_for(frame, options.trace != nullptr)),
        replays_(&table_ == plan.replay_table()),
        frame_(frame),
        memory_(*frame.memory),
        streams_(frame, plan.streams()),
        fetches_(plan.fetches()),
        options_(options),
        outer_(step_of_thread),
        asks_streams_(!streams_.empty() || (outer_ != nullptr && outer_->asks_streams_)),
        deadline_(earlier(options.deadline, outer_ != nullptr ? outer_->deadline_ : std::nullopt)),
        pool_(options.pool != nullptr && options.pool->size() > 0 ? options.pool : nullptr),
        remaining_(options.nodes_left != nullptr ? *options.nodes_left : own_remaining_) {
    remaining_ = table_.count();
    memory_.make_lanes(1 + (pool_ != nullptr ? pool_->size() : 0));
    for (int i = 0; i < table_.size(); ++i)
      memory_.pending[i].store(table_[i].pending, std::memory_order_relaxed);  // published by offer()
    if (options_.trace != nullptr) started_at_.resize(table_.size());
  }

  void run() {
    if (!streams_.empty()) log_begin(frame_);
    {
      const PartOf outer(*this);
      const StreamErrorListener of_streams(streams_.empty() ? nullptr : frame_.stream_errors.get(),
                                           [this](std::exception_ptr error) { fail(std::move(error)); });
      const StepListener listener(options_.cancellation,
                                  [this](std::exception_ptr error) { fail(std::move(error)); });
      const int shared_sources = insert_sources();
      if (pool_ != nullptr) pool_->offer(*this);
      for (int i = 0; i < std::min(shared_sources, helpers()); ++i) pool_->wake();
      take_part_as_caller();
      if (pool_ != nullptr) pool_->withdraw(*this);
      // From here on no kernel runs or is being started, but asynchronous ones may still be under way.
      const bool failed = failed_.load();
      if (failed && !streams_.empty()) streams_.skip(first_error());
      if (failed) end_asynchronous_nodes();
      wait_for_asynchronous_nodes();
      if (!streams_.empty())
        end_streams(failed), log_end(frame_, table_.size(), fetches_, frame_.values.data());
    }
    if (failed_.load()) clean_up_and_throw();
  }

  bool has_work() const override {
    return !failed_.load(std::memory_order_relaxed) && !memory_.shared.empty();
  }

  void take_part(int worker) override {
    const WorksFor works(*this, options_.busy_threads);
    work(*memory_.lanes[worker + 1]);
  }

 private:
  // While it lives, the step ends when the one around it does.
  class PartOf {
   public:
    explicit PartOf(Step& step) : step_(step) {
      if (step.outer_ != nullptr) step.outer_->add_inner(step);
    }
    ~PartOf() {
      if (step_.outer_ != nullptr) step_.outer_->remove_inner(step_);
    }
    PartOf(const PartOf&) = delete;
    PartOf& operator=(const PartOf&) = delete;

   private:
    Step& step_;
  };

  // Locks are taken from the outer step to the inner one, here and in note_failure().
  void add_inner(Step& inner) {
    MutexLock lock(mutex_);
    inner.next_ = first_inner_;
    if (first_inner_ != nullptr) first_inner_->previous_ = &inner;
    first_inner_ = &inner;
    if (error_) inner.fail(over());
  }

  void remove_inner(Step& inner) {
    MutexLock lock(mutex_);
    if (inner.next_ != nullptr) inner.next_->previous_ = inner.previous_;
    (inner.previous_ != nullptr ? inner.previous_->next_ : first_inner_) = inner.next_;
  }

  static std::optional<Clock::time_point> earlier(std::optional<Clock::time_point> a,
                                                  std::optional<Clock::time_point> b) {
    return a && b ? std::min(a, b) : a ? a : b;
  }

  bool has_other_work() const { return !memory_.shared.empty() || remaining_.load() == 0 || failed_.load(); }

  int helpers() const { return pool_ != nullptr ? pool_->size() : 0; }

  // Returns how many of the sources any thread may run.
  int insert_sources() {
    int shared = 0;
    for (const int source : table_.sources()) {
      if (pool_ == nullptr || StepTable::is_inexpensive(table_[source])) {
        memory_.lanes[0]->ready.insert(source);
      } else {
        memory_.shared.insert(source);
        ++shared;
      }
    }
    return shared;
  }

  void take_part_as_caller() {
    const WorksFor works(*this, options_.busy_threads);
    while (true) {
      work(*memory_.lanes[0]);
      if (remaining_.load() == 0 || failed_.load()) return;
      if (options_.votes != nullptr &&
          detail::look_for_others(*options_.votes, [this] { return has_other_work(); }))
        continue;
      if (!wait_for_work()) ask_streams();
    }
  }

  void work(Lane& lane) {
    set_intra_op_threads(options_.intra_op_threads);  // OpenMP keeps the number for each thread
    int node = -1;
    while (!is_stopped(lane) && (node >= 0 || (node = next(lane)) >= 0)) node = run_node(node, lane);
    if (lane.finished == 0) return;
    const int finished = std::exchange(lane.finished, 0);
    if (remaining_.fetch_sub(finished) != finished || lane.number == 0) return;
    // A helper: the caller cannot leave before it is withdrawn from the pool.
    MutexLock lock(mutex_);
    changed_.notify_all();
  }

  bool is_stopped(const Lane& lane) {
    if (failed_.load(std::memory_order_relaxed)) return true;
    if (!deadline_ || lane.number > 0 || Clock::now() < *deadline_) return false;
    fail(timed_out());
    return true;
  }

  int next(Lane& lane) {
    const int own = lane.ready.take();
    return own >= 0 ? own : memory_.shared.take();
  }

  // False where there is none yet, and the streams are to be asked.
  bool wait_for_work() {
    const auto asked_at = asks_streams_ ? std::optional(Clock::now() + kStreamsAskedEvery) : std::nullopt;
    const auto until = earlier(deadline_, asked_at);
    bool is_time = false;
    if (options_.busy_threads != nullptr) --*options_.busy_threads;
    MutexLock lock(mutex_);
    while (!is_time) {
      caller_sleeps_.store(true);  // before it looks: whoever adds work later will see it
      if (has_other_work()) break;
      if (!until) {
        changed_.wait(mutex_);
      } else if (!changed_.wait_until(mutex_, *until)) {
        const auto now = Clock::now();
        if (deadline_ && now >= *deadline_) note_failure(timed_out());
        else is_time = now >= *until;
      }
    }
    caller_sleeps_.store(false);
    if (options_.busy_threads != nullptr) ++*options_.busy_threads;
    return !is_time;
  }

  void ask_streams() {
    if (outer_ != nullptr) outer_->ask_streams();  // whose own caller may be the one that sleeps here
    if (std::exception_ptr error = streams_.failure()) fail(std::move(error));
  }

  static std::exception_ptr timed_out() {
    return std::make_exception_ptr(DeadlineExceededError("Timed out waiting for notification"));
  }
  static std::exception_ptr over() {
    return std::make_exception_ptr(CancelledError("the step was cancelled"));
  }

  // Runs the node; returns a successor to go on with, or −1.
  int run_node(int index, Lane& lane) {
    const StepTable::Node& node = table_[index];
    if ((node.flags & StepTable::kIsConditional) != 0 && !happens(nodes_[index], index, frame_)) {
      ++lane.finished;
      return release_successors(node, lane);
    }
    try {
      if ((node.flags & StepTable::kChecksVariables) != 0) check_variables(index);
      if ((node.flags & StepTable::kIsAsynchronous) != 0) {
        start(index);
        return -1;
      }
      if ((node.flags & StepTable::kRunsKernel) != 0) compute(index, node, lane);
    } catch (...) {
      fail(described(index, std::current_exception()));
      return -1;
    }
    ++lane.finished;
    return release_successors(node, lane);
  }

  void check_variables(int index) const {
    for (const VariableStorage* variable : nodes_[index].must_be_initialized)
      if (!variable->initialized.load())
        throw FailedPreconditionError("Attempting to use uninitialized value {}", variable->name);
  }

  void compute(int index, const StepTable::Node& node, const Lane& lane) {
    Kernel& kernel = replays_ && frame_.segments[index] ? *frame_.segments[index] : *frame_.kernels[index];
    // What stands in a stream is timed there, and cheap to put there.
    if (options_.trace != nullptr && (node.flags & StepTable::kIsOnStream) == 0) {
      const auto start = Clock::now();
      kernel.compute(frame_.contexts[index]);
      record(index, fmt::format("{} thread {}", device_of(nodes_[index]), lane.number), start);
    } else if (pool_ == nullptr || StepTable::is_inexpensive(node)) {
      kernel.compute(frame_.contexts[index]);
    } else {
      const std::uint64_t start = cycle_count();
      kernel.compute(frame_.contexts[index]);
      StepTable::add_measurement(node, cycle_count() - start);
    }
  }

  bool becomes_ready(int node) {
    return table_[node].pending == 1 || memory_.pending[node].fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  // Keeps inexpensive ones, and the last expensive one if there is nothing else to do.
  int release_successors(const StepTable::Node& node, Lane& lane) {
    int expensive = -1;
    for (const int successor : table_.successors(node)) {
      if (!becomes_ready(successor)) continue;
      if (pool_ == nullptr || StepTable::is_inexpensive(table_[successor])) {
        lane.ready.insert(successor);
        continue;
      }
      if (expensive >= 0) share(expensive);
      expensive = successor;
    }
    if (pool_ == nullptr) {
      // In the plan's order, with what asynchronous nodes have made ready meanwhile.
      if (shared_for_caller_.load(std::memory_order_relaxed)) take_over_shared(lane);
    } else if (expensive >= 0) {
      if (lane.ready.empty()) return expensive;
      share(expensive);
    }
    return lane.ready.take();
  }

  void take_over_shared(Lane& lane) {
    shared_for_caller_.store(false);
    for (int node = memory_.shared.take(); node >= 0; node = memory_.shared.take()) lane.ready.insert(node);
  }

  void share(int node) {
    memory_.shared.insert(node);
    if (caller_sleeps_.load() && caller_sleeps_.exchange(false)) {
      MutexLock lock(mutex_);
      changed_.notify_all();
    } else if (pool_ != nullptr) {
      pool_->wake();
    }
  }

  void start(int index) {
    if (options_.trace != nullptr) started_at_[index] = Clock::now();
    {
      MutexLock lock(mutex_);
      memory_.started.push_back(index);
    }
    try {
      frame_.async_kernels[index]->start(frame_.contexts[index], {&Step::on_completion, this, index});
    } catch (...) {
      MutexLock lock(mutex_);
      std::erase(memory_.started, index);
      throw;
    }
  }

  static void on_completion(void* step, int index, std::exception_ptr error) {
    static_cast<Step*>(step)->complete(index, std::move(error));
  }

  void complete(int index, std::exception_ptr error) {
    if (error) {
      // Of a device's work that nobody waited for: then it names the node that it comes from.
      const std::exception_ptr earlier = frame_.stream_errors->first();
      fail(earlier ? earlier : described(index, std::move(error)));
    } else {
      if (options_.trace != nullptr) record(index, nodes_[index].lane, started_at_[index]);
      for (const int successor : table_.successors(table_[index]))
        if (becomes_ready(successor)) share(successor);
      shared_for_caller_.store(true);
    }
    // Last, and under the lock: the caller leaves when it sees this.
    MutexLock lock(mutex_);
    std::erase(memory_.started, index);
    remaining_.fetch_sub(1);
    changed_.notify_all();
  }

  void end_asynchronous_nodes() {
    const std::exception_ptr error = first_error();
    std::vector<int> started;
    {
      MutexLock lock(mutex_);
      started = memory_.started;
    }
    try {
      for (const int node : started)
        if (auto* kernel = dynamic_cast<Cancellable*>(frame_.async_kernels[node])) kernel->cancel();
      if (options_.on_failure) options_.on_failure(error);
    } catch (const std::exception& another) {
      // The first error is told; the asynchronous nodes must be waited for before this step goes.
      log_error("while a step that failed was ended: {}", another.what());
    }
  }

  void wait_for_asynchronous_nodes() {
    MutexLock lock(mutex_);
    while (!memory_.started.empty()) changed_.wait(mutex_);
  }

  void end_streams(bool failed_before) {
    const auto failure = [&] {
      if (deadline_ && Clock::now() >= *deadline_) fail(timed_out());
      return failed_.load() ? first_error() : nullptr;
    };
    if (std::exception_ptr error = streams_.wait(failure)) fail(std::move(error));
    if (failed_.load() && !failed_before) end_asynchronous_nodes();  // none is left: the others are told
    if (options_.trace == nullptr || failed_.load()) return;
    MutexLock lock(mutex_);
    streams_.append_to(*options_.trace, nodes_, table_);
  }

  std::exception_ptr first_error() {
    MutexLock lock(mutex_);
    return error_;
  }

  [[noreturn]] void clean_up_and_throw() {
    while (memory_.shared.take() >= 0) {
    }
    for (auto& lane : memory_.lanes) {
      lane->finished = 0;
      while (lane->ready.take() >= 0) {
      }
    }
    std::rethrow_exception(first_error());
  }

  void fail(std::exception_ptr error) {
    MutexLock lock(mutex_);
    note_failure(std::move(error));
  }

  void note_failure(std::exception_ptr error) KOLO_REQUIRES(mutex_) {
    if (error_) return;
    error_ = std::move(error);
    failed_.store(true);
    changed_.notify_all();
    for (Step* inner = first_inner_; inner != nullptr; inner = inner->next_) inner->fail(over());
  }

  std::exception_ptr described(int index, std::exception_ptr cause) const {
    return kolo::described(std::move(cause), nodes_[index].name, nodes_[index].op, nodes_[index].device);
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

  const std::vector<PlanNode>& nodes_;
  const StepTable& table_;
  const bool replays_;  // segments are one node each
  Frame& frame_;
  StepMemory& memory_;
  detail::StepStreams streams_;
  const std::vector<int>& fetches_;
  const StepOptions& options_;
  Step* const outer_;                                // that it is part of; null: none
  const bool asks_streams_;                          // its own, or an outer step's
  const std::optional<Clock::time_point> deadline_;  // its own, or the outer step's
  ThreadPool* const pool_;                           // null: the caller alone
  std::vector<Clock::time_point> started_at_;        // of asynchronous nodes, while tracing
  alignas(64) std::atomic<int> own_remaining_{0};
  std::atomic<int>& remaining_;                 // nodes that have not finished, as far as lanes have told
  std::atomic<bool> failed_{false};             // error_ is set
  std::atomic<bool> caller_sleeps_{false};      // it wants to be told of shared nodes
  std::atomic<bool> shared_for_caller_{false};  // asynchronous nodes have made others ready

  Mutex mutex_;
  CondVar changed_;  // for the caller
  std::exception_ptr error_ KOLO_GUARDED_BY(mutex_);
  Step* first_inner_ KOLO_GUARDED_BY(mutex_) = nullptr;  // steps that are part of this one, under way
  Step* next_ = nullptr;                                 // in the outer step's list, under its mutex
  Step* previous_ = nullptr;
};

}  // namespace

void run_step(const Plan& plan, Frame& frame, const StepOptions& options) {
  if (options.trace != nullptr) {
    options.trace->arena_bytes = plan.memory().arena_bytes;
    options.trace->unplanned_bytes = plan.memory().unplanned_bytes;
  }
  Step(plan, frame, options).run();
  plan.expect_planned_memory(frame);
}

}  // namespace kolo
