#include <kolo/core/cluster/master/master_step.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/text.h>
#include <kolo/core/cluster/master/request_id.h>
#include <kolo/core/cluster/master/task_error.h>

#include <kolo/core/cluster/rpc/messages_internal.h>

namespace kolo::detail {
namespace {

using Clock = MasterStep::Clock;

// A task that only suffers from another's error is the first to tell sometimes; the error itself is then on
// its way, or the loss of its task is about to be noticed.
constexpr std::chrono::seconds kStepPatience{3};
// Below it lies the master's own deadline, which knows better what the step was waiting for.
constexpr std::chrono::seconds kSlack{2};
constexpr std::chrono::milliseconds kAskForDeadline{250}, kAskForStall{2000};

// Whether an error that came for the part of another task means that this is lost. What a task tells of its
// nodes begins with its name; what does not is the word of the transport, of a task that stops, or of a
// process that does not know the session.
bool is_loss(const std::exception_ptr& error) {
  const std::string text = message_of(error);
  if (text.starts_with("From ")) return false;
  const Code code = code_of(error);
  return code == Code::unavailable ||
         (code == Code::aborted && text.find("is not found") != std::string::npos);
}

// The part on the caller's own thread.
class OwnCall final : public Call {
 public:
  void cancel() override {
    cancellation.cancel(std::make_exception_ptr(ConsequenceError(Code::cancelled, "the step was cancelled")));
  }
  StepCancellation cancellation;
};

void cancel_all(const std::vector<std::shared_ptr<Call>>& calls) {
  for (const auto& call : calls) call->cancel();
}

// What a task that has not finished says of itself. The last of these tells most: one that only receives
// waits for another, and one with nothing to wait for computes, or does not answer.
enum class Telling { nothing, receives, computes, waits };

// Of what a task waits for: rather what it does itself than what another one is to send.
const TaskStatus::Wait* telling(const std::vector<TaskStatus::Wait>& waits) {
  const auto own = std::find_if(waits.begin(), waits.end(), [](const auto& w) { return w.op != "_NetRecv"; });
  if (own != waits.end()) return &*own;
  return waits.empty() ? nullptr : &waits.front();
}

}  // namespace

MasterStep::MasterStep(MasterStepOptions options)
    : options_(std::move(options)), states_(options_.parts.size()), results_(options_.parts.size()) {
  if (options_.stall_warning.count() > 0) {
    next_stall_ = began_ + options_.stall_warning;
    stall_age_ = options_.stall_warning;
  }
}

std::vector<PartResult> MasterStep::run(const std::function<RunPartRequest(std::size_t)>& request,
                                        const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] {
    cancel(std::make_exception_ptr(CancelledError("The run was stopped by its stop_token.")));
  });
  for (std::size_t i = 0; i < options_.parts.size(); ++i) {
    {
      MutexLock lock(mutex_);
      if (error_ || consequence_) break;
    }
    start(i, request(i));
  }
  std::jthread deadline_thread, stall_thread;
  std::exception_ptr error;
  {
    MutexLock lock(mutex_);
    while (open_ > 0) changed_.wait(mutex_);
    // What is late now is not told any more.
    deadline_thread = std::move(deadline_thread_), stall_thread = std::move(stall_thread_);
    patience_ = next_stall_ = Clock::time_point::max();
    timed_out_ = true;
    error = error_ ? error_ : consequence_;
  }
  deadline_thread = std::jthread(), stall_thread = std::jthread();
  // A callback may drop this step on a thread of a worker's, which must not end with it: it would wait for
  // itself.
  for (RegisteredPart& part : options_.parts) part.worker.reset();
  options_.run_here = nullptr;
  options_.on_lost = nullptr;
  if (error) std::rethrow_exception(error);
  MutexLock lock(mutex_);
  return std::move(results_);
}

void MasterStep::start(std::size_t part, RunPartRequest request) {
  const RegisteredPart& registered = options_.parts[part];
  request.session = options_.session;
  request.part = registered.handle;
  request.step = options_.number;
  request.request_id = random_request_id();
  request.taken = registered.taken;
  request.given = registered.given;
  request.only_ends =
      !registered.has_fetches && !request.metadata && request.trace_level == TraceLevel::no_trace;
  {
    MutexLock lock(mutex_);
    states_[part].started = true;
    ++open_;
  }
  const Deadline deadline = options_.deadline.shifted(kSlack);
  if (options_.run_here && registered.task == options_.own_task) return run_here(part, request, deadline);
  std::shared_ptr<Call> call;
  try {
    call = registered.worker->run_part(
        request, deadline, [self = shared_from_this(), part](std::exception_ptr error, PartResult result) {
          self->finished(part, std::move(error), std::move(result));
        });
  } catch (...) {
    finished(part, std::current_exception(), {});
    return;
  }
  bool late = false;
  {
    MutexLock lock(mutex_);
    if (states_[part].done) return;
    late = error_ != nullptr;
    if (!late) states_[part].call = call;
  }
  if (late) call->cancel();
}

void MasterStep::run_here(std::size_t part, const RunPartRequest& request, const Deadline& deadline) {
  const auto call = std::make_shared<OwnCall>();
  bool late = false;
  {
    MutexLock lock(mutex_);
    states_[part].call = call;
    late = error_ != nullptr;
  }
  if (late) call->cancel();
  std::exception_ptr error;
  PartResult result;
  try {
    result = options_.run_here(request, deadline, call->cancellation);
  } catch (...) {
    error = std::current_exception();
  }
  finished(part, error, std::move(result));
}

void MasterStep::finished(std::size_t part, std::exception_ptr error, PartResult result) {
  const std::string& task = options_.parts[part].task;
  const bool consequence = is_consequence(error);
  if (error && !consequence && task != options_.own_task) {
    const bool lost = is_loss(error);
    MutexLock lock(mutex_);
    if (lost && !error_ && options_.on_lost) options_.on_lost(task);
  }
  std::vector<std::shared_ptr<Call>> calls;
  {
    MutexLock lock(mutex_);
    if (consequence && !error_ && !consequence_) {
      consequence_ = from_task(task, error);
      patience_ = Clock::now() + kStepPatience;
    } else if (error && !consequence) {
      calls = fail(from_task(task, error));
    }
    results_[part] = std::move(result);
  }
  cancel_all(calls);
  {
    MutexLock lock(mutex_);
    states_[part].done = true;
    states_[part].call.reset();
    --open_;
  }
  changed_.notify_all();  // without the lock, which who wakes takes; the caller still holds this
}

std::vector<std::shared_ptr<Call>> MasterStep::fail(std::exception_ptr error) {
  if (error_) return {};
  error_ = std::move(error);
  std::vector<std::shared_ptr<Call>> calls;
  for (PartState& state : states_)
    if (!state.done && state.call) calls.push_back(state.call);
  return calls;
}

void MasterStep::cancel(std::exception_ptr error) {
  std::vector<std::shared_ptr<Call>> calls;
  {
    MutexLock lock(mutex_);
    calls = fail(std::move(error));
  }
  cancel_all(calls);
}

void MasterStep::lose(const std::string& task, const std::exception_ptr& why) {
  std::vector<std::shared_ptr<Call>> calls;
  {
    MutexLock lock(mutex_);
    bool concerned = false;
    for (std::size_t i = 0; i < states_.size(); ++i)
      concerned = concerned || (options_.parts[i].task == task && !states_[i].done);
    if (!concerned || error_) return;
    if (options_.on_lost) options_.on_lost(task);
    calls = fail(make_error(Code::unavailable, fmt::format("From {}:\n{}", task, message_of(why))));
  }
  cancel_all(calls);
}

Clock::time_point MasterStep::next_look() {
  MutexLock lock(mutex_);
  if (error_) return Clock::time_point::max();
  auto next = std::min(patience_, next_stall_);
  if (options_.deadline && !timed_out_) next = std::min(next, *options_.deadline);
  return next;
}

void MasterStep::look(Clock::time_point now) {
  std::vector<std::shared_ptr<Call>> calls;
  {
    MutexLock lock(mutex_);
    if (error_) return;
    if (options_.deadline && !timed_out_ && now >= *options_.deadline) {
      timed_out_ = true;
      deadline_thread_ = std::jthread([this] { tell_deadline(); });
    }
    if (!telling_stall_ && now >= next_stall_) {
      telling_stall_ = true;
      stall_thread_ = std::jthread([this, age = stall_age_] { tell_stall(age); });
      stall_age_ *= 2;
      next_stall_ = began_ + stall_age_;
    }
    if (now >= patience_) {
      patience_ = Clock::time_point::max();
      calls = fail(consequence_);
    }
  }
  cancel_all(calls);
}

std::vector<std::string> MasterStep::unfinished() {
  MutexLock lock(mutex_);
  std::vector<std::string> tasks;
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (states_[i].started && !states_[i].done) tasks.push_back(options_.parts[i].task);
  return tasks;
}

std::vector<TaskStatus::Wait> MasterStep::waits_on(const std::string& task, Clock::time_point deadline) {
  std::vector<Wait> waits;
  for (const RegisteredPart& part : options_.parts) {
    if (part.task != task) continue;
    try {
      for (Wait& wait : from_def(part.worker->call<GetStatus>({}, deadline)).waits)
        if (wait.session == options_.session && wait.step == options_.number)
          waits.push_back(std::move(wait));
    } catch (const std::exception&) {
      // It is told as one that says nothing.
    }
  }
  return waits;
}

void MasterStep::tell_deadline() {
  const auto until = Clock::now() + kAskForDeadline;
  std::string waiting_for;
  auto told = Telling::nothing;
  for (const std::string& task : unfinished()) {
    const std::vector<Wait> waits = waits_on(task, until);
    const Wait* const wait = telling(waits);
    const auto tells = wait == nullptr          ? Telling::computes
                       : wait->op != "_NetRecv" ? Telling::waits
                       : wait->computes         ? Telling::computes
                                                : Telling::receives;
    if (tells <= told) continue;
    told = tells;
    waiting_for = tells == Telling::computes ? task
                                             : fmt::format("{} ({} nodes left, e.g. {} ({}))", task,
                                                           wait->nodes_left, wait->node, wait->op);
  }
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(*options_.deadline - began_);
  cancel(std::make_exception_ptr(DeadlineExceededError(
      "Timed out waiting for notification after {} ms: waiting for {}",
      std::max<std::int64_t>(age.count(), 0), waiting_for.empty() ? "the last of its tasks" : waiting_for)));
}

void MasterStep::tell_stall(std::chrono::milliseconds age) {
  const auto until = Clock::now() + kAskForStall;
  for (const std::string& task : unfinished()) {
    std::string what;
    const std::vector<Wait> waits = waits_on(task, until);
    if (const Wait* const wait = telling(waits))
      what = fmt::format(": {} ({}) waits for {}", wait->node, wait->op, wait->what);
    log_warning("step {} of session {}: waited {} s for {}{}", options_.number, options_.session,
                static_cast<double>(age.count()) / 1000, task, what);
  }
  MutexLock lock(mutex_);
  telling_stall_ = false;
}

StepKeeper::StepKeeper() : thread_([this] { keep(); }) {}

StepKeeper::~StepKeeper() {
  MutexLock lock(mutex_);
  over_ = true;
  changed_.notify_all();
}

void StepKeeper::add(MasterStep& step) {
  const auto next = step.next_look();
  MutexLock lock(mutex_);
  steps_.push_back(&step);
  if (next < next_) changed_.notify_all();
}

void StepKeeper::remove(MasterStep& step) {
  MutexLock lock(mutex_);
  steps_.erase(std::remove(steps_.begin(), steps_.end(), &step), steps_.end());
}

void StepKeeper::keep() {
  MutexLock lock(mutex_);
  while (!over_) {
    const auto now = Clock::now();
    // Each second anyway: a consequence shortens a step's patience without a word, and most steps are over
    // long before they want to be looked at, so that adding one wakes nobody.
    next_ = now + std::chrono::seconds(1);
    for (MasterStep* step : steps_) {
      step->look(now);
      next_ = std::min(next_, step->next_look());
    }
    // What is due and cannot be told yet is tried again soon.
    next_ = std::max(next_, now + std::chrono::milliseconds(10));
    changed_.wait_until(mutex_, next_);
  }
}

}  // namespace kolo::detail
