#include <kolo/core/cluster/master/master_session.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/text.h>
#include <kolo/core/cluster/master/extend_graph.h>
#include <kolo/core/cluster/master/master_session_internal.h>
#include <kolo/core/cluster/master/run_metadata.h>
#include <kolo/core/cluster/master/task_error.h>
#include <kolo/core/passes/prune.h>
#include <kolo/core/runtime/step_request.h>

#include <kolo/core/cluster/rpc/messages_internal.h>

namespace kolo::detail {
namespace {

constexpr std::chrono::seconds kPatience{5};  // with a task that may be away
constexpr std::chrono::seconds kOpening{30};
constexpr std::chrono::seconds kStillWaiting{10};  // between two lines that say so
constexpr const char* kClosed = "Step was cancelled by an explicit call to `Session::close()`.";

std::map<std::string, std::uint64_t> incarnations_of(const std::map<std::string, TaskStatus>& tasks) {
  std::map<std::string, std::uint64_t> incarnations;
  for (const auto& [task, status] : tasks) incarnations[task] = incarnation_of(status);
  return incarnations;
}

bool is_away(Code code) { return code == Code::unavailable || code == Code::deadline_exceeded; }

}  // namespace

// The client's sign of life.
class MasterSession::Watcher final : public Call, public std::enable_shared_from_this<Watcher> {
 public:
  Watcher(std::weak_ptr<MasterSession> session, std::function<void(std::exception_ptr)> ended)
      : session_(std::move(session)), ended_(std::move(ended)) {}

  void cancel() override {
    if (const auto session = session_.lock()) {
      bool stood = false;
      {
        MutexLock lock(session->mutex_);
        stood = session->watchers_.erase(shared_from_this()) > 0;
        session->last_sign_ = Clock::now();
      }
      if (stood)
        log_warning("Session {}: its client {} is gone; its runs are cancelled", session->options_.handle,
                    session->options_.client);
    }
    end(std::make_exception_ptr(CancelledError("the watch was cancelled")));
  }
  void end(std::exception_ptr why) KOLO_EXCLUDES(mutex_) {
    std::function<void(std::exception_ptr)> ended;
    {
      MutexLock lock(mutex_);
      ended.swap(ended_);
    }
    if (ended) ended(std::move(why));
  }

 private:
  const std::weak_ptr<MasterSession> session_;
  Mutex mutex_;
  std::function<void(std::exception_ptr)> ended_ KOLO_GUARDED_BY(mutex_);
};

MasterSession::MasterSession(const MasterEnvironment& environment, MasterSessionOptions options,
                             std::map<std::string, TaskStatus> tasks)
    : environment_(environment),
      options_(std::move(options)),
      incarnations_(incarnations_of(tasks)),
      placer_(environment.task, tasks, options_.config) {}

void MasterSession::open(const Deadline& deadline) {
  def::WorkerSessionRequestDef request;
  request.set_session(options_.handle);
  request.set_master(environment_.task);
  request.set_master_incarnation(environment_.incarnation);
  *request.mutable_config() = to_def(options_.config);
  std::vector<std::string> opened;
  for (const auto& [task, incarnation] : incarnations_) {
    try {
      environment_.peers->worker(task)->call<CreateWorkerSession>(request, deadline.at_most(kOpening));
      opened.push_back(task);
    } catch (...) {
      const std::exception_ptr error = from_task(task, std::current_exception());
      // A call that was cancelled, or lost, may have made it.
      if (task != environment_.task) environment_.watches->close_later(task, options_.handle);
      for (const std::string& before : opened) {
        try {
          environment_.peers->worker(before)->call<DeleteWorkerSession>(of_session(options_.handle),
                                                                        Clock::now() + kPatience);
        } catch (const std::exception& lost) {
          log_debug("session {} stays on {}: {}", options_.handle, before, lost.what());
          environment_.watches->close_later(before, options_.handle);
        }
      }
      std::rethrow_exception(error);
    }
  }
  for (const std::string& task : opened)
    if (task != environment_.task) environment_.watches->enter(task);
}

std::int64_t MasterSession::extend(std::int64_t version, const GraphDef& nodes) {
  const Use use(*this);
  MutexLock one(extend_mutex_);
  {
    MutexLock lock(mutex_);
    if (version != version_)
      throw AbortedError("Current version is {} but caller expected {}.", version_, version);
  }
  extend_graph(graph_, nodes, environment_.target);
  MutexLock lock(mutex_);
  version_ += static_cast<std::int64_t>(nodes.nodes.size());
  return version_;
}

StepNames MasterSession::names_of(const RunStepRequest& request) {
  if (request.callable == 0) return request.names;
  MutexLock lock(mutex_);
  const auto found = callables_.find(request.callable);
  if (found == callables_.end())
    throw NotFoundError("No such callable handle: {} in session {}", request.callable, options_.handle);
  return found->second;
}

std::int64_t MasterSession::make_callable(const StepNames& names) {
  const Use use(*this);
  std::vector<Fetch> fetches(names.fetches.begin(), names.fetches.end());
  std::vector<Fetch> targets(names.targets.begin(), names.targets.end());
  checked_request(graph_, fetches, {}, targets);
  for (const std::string& feed : names.feeds) checked_feed_target(graph_, feed);
  MutexLock lock(mutex_);
  callables_[++last_callable_] = names;
  return last_callable_;
}

void MasterSession::release_callable(std::int64_t callable) {
  const Use use(*this);
  MutexLock lock(mutex_);
  callables_.erase(callable);
}

StepResult MasterSession::run(const RunStepRequest& request, const Deadline& deadline) {
  const Use use(*this, deadline);
  check_whole();
  const StepNames names = names_of(request);
  if (names.feeds.size() != request.feeds.size())
    throw InvalidArgumentError("{} tensors are fed to a step with {} feeds", request.feeds.size(),
                               names.feeds.size());
  Feeds feeds;
  for (std::size_t i = 0; i < names.feeds.size(); ++i) feeds.emplace_back(names.feeds[i], request.feeds[i]);
  const StepRequest resolved = checked_request(graph_, {names.fetches.begin(), names.fetches.end()}, feeds,
                                               {names.targets.begin(), names.targets.end()});
  std::vector<std::string> lines;
  std::shared_ptr<StepPlan> plan;
  try {
    plan = plan_for(resolved, use.deadline(), lines);
  } catch (const Error& error) {
    // The step itself, which close() cancels, says so; what its plan waits for does not know why.
    if (error.code() == Code::cancelled && closing_.stop_requested()) throw CancelledError("{}", kClosed);
    throw;
  }
  StepResult result = run_plan(*plan, request, resolved, deadline);
  result.placement_lines = std::move(lines);
  return result;
}

std::shared_ptr<StepPlan> MasterSession::plan_for(const StepRequest& request, const Deadline& deadline,
                                                  std::vector<std::string>& lines) {
  bool made = false;
  const auto make = [&] {
    made = true;
    return make_plan(request, deadline, lines);
  };
  auto plan = plans_.get(key_of(request), make, deadline);
  if (!made)
    for (const RegisteredPart& part : plan->parts()) check_task(part.task, deadline);
  return plan;
}

std::shared_ptr<StepPlan> MasterSession::make_plan(const StepRequest& request, const Deadline& deadline,
                                                   std::vector<std::string>& lines) {
  StepGraph graph = prune(signature_of(request));
  lines = placer_.place(graph);
  PartitionOptions options;
  options.master = environment_.task;
  options.target = environment_.target;
  if (options_.in_process) options.client_task = environment_.task;
  options.incarnation = [this](const std::string& device) { return placer_.incarnation(device); };
  options.device_of = [this](const Node& node) { return placer_.known_device_of(node); };
  options.seed = graph_.seed();
  std::vector<StepPart> parts = partition(graph, options);
  // Others' parts are started first, so that they work while this thread does its own.
  std::stable_partition(parts.begin(), parts.end(),
                        [&](const StepPart& part) { return part.task != environment_.task; });
  for (const StepPart& part : parts) check_task(part.task, deadline);
  auto plan = std::make_shared<StepPlan>(
      options_.handle,
      [watches = environment_.watches](const std::string& task) { return watches->is_lost(task); });
  for (StepPart& part : parts) {
    def::RegisterGraphRequestDef request;
    request.set_session(options_.handle);
    put_strings(*request.mutable_feeds(), part.feeds);
    put_strings(*request.mutable_fetches(), part.fetches);
    put_strings(*request.mutable_targets(), part.targets);
    try {
      const std::shared_ptr<Worker> worker = environment_.peers->worker(part.task);
      if (has_random_ops(part.graph)) start_random_ops(part.task, *worker, deadline);
      plan->add({.task = part.task,
                 .worker = worker,
                 .handle = worker->call<RegisterGraph>(request, std::move(part.graph), deadline).part(),
                 .taken = std::move(part.sends[environment_.task]),
                 .given = std::move(part.receives[environment_.task]),
                 .has_fetches = !part.fetches.empty()});
    } catch (...) {
      std::rethrow_exception(from_task(part.task, std::current_exception()));
    }
  }
  return plan;
}

StepResult MasterSession::run_plan(const StepPlan& plan, const RunStepRequest& request,
                                   const StepRequest& resolved, const Deadline& deadline) {
  StepsOver over;
  const std::shared_ptr<MasterStep> step = begin_step(plan, deadline, over);
  const auto ask = [&](std::size_t i) {
    const std::string& task = plan.parts()[i].task;
    RunPartRequest part;
    if (task == environment_.task) part.feeds = request.feeds;
    part.trace_level = request.trace_level;
    part.metadata = request.metadata;
    part.over = over[task];
    return part;
  };
  std::vector<PartResult> results;
  std::exception_ptr failure;
  try {
    const StepKeeper::Kept kept(*environment_.keeper, *step);
    results = step->run(ask, deadline.stop());
  } catch (...) {
    failure = std::current_exception();
  }
  end_step(plan, step);
  if (failure) std::rethrow_exception(failure);
  return joined(plan, std::move(results), resolved.fetches.size());
}

std::shared_ptr<MasterStep> MasterSession::begin_step(const StepPlan& plan, const Deadline& deadline,
                                                      StepsOver& over) {
  MutexLock lock(mutex_);
  if (closed_) throw FailedPreconditionError("Session is closed.");
  const std::int64_t number = ++last_step_;
  auto step = std::make_shared<MasterStep>(
      MasterStepOptions{.session = options_.handle,
                        .number = number,
                        .parts = plan.parts(),
                        .own_task = environment_.task,
                        .run_here = environment_.run_here,
                        .deadline = deadline.with({}),
                        .stall_warning = environment_.stall_warning,
                        .on_lost = [this, number](const std::string& task) { mark_lost(task, number); }});
  for (const RegisteredPart& part : plan.parts()) over[part.task].swap(over_[part.task]);
  steps_.insert(step);
  return step;
}

void MasterSession::end_step(const StepPlan& plan, const std::shared_ptr<MasterStep>& step) {
  MutexLock lock(mutex_);
  steps_.erase(step);
  // Only now: what is named here is dropped, and steps run beside one another.
  for (const RegisteredPart& part : plan.parts())
    if (auto& told = over_[part.task]; told.size() < kMostStepsOver) told.push_back(step->number());
}

StepResult MasterSession::joined(const StepPlan& plan, std::vector<PartResult> results,
                                 std::size_t fetches) const {
  StepResult result;
  const std::vector<std::string> tasks = environment_.peers->tasks();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string& task = plan.parts()[i].task;
    const bool own = task == environment_.task;
    if (own) result.fetches = std::move(results[i].fetches);
    const auto place = std::find(tasks.begin(), tasks.end(), task) - tasks.begin();
    merge_metadata(result.metadata, std::move(results[i].metadata), own ? 0 : static_cast<int>(place) + 1);
  }
  if (result.fetches.size() != fetches)
    throw InternalError("a step of session {} gave {} values for {} fetches", options_.handle,
                        result.fetches.size(), fetches);
  return result;
}

void MasterSession::check_whole() {
  MutexLock lock(mutex_);
  if (!lost_.empty()) throw AbortedError("{}", lost_);
}

void MasterSession::mark_lost(const std::string& task, std::int64_t step) {
  MutexLock lock(mutex_);
  if (lost_.empty())
    lost_ = fmt::format("Session {} lost {} in step {}; make a new session", options_.handle, task, step);
}

void MasterSession::check_task(const std::string& task, const Deadline& deadline) {
  if (task == environment_.task) return;
  std::uint64_t now = 0;
  try {
    now = environment_.watches->look(task, deadline.at_most(kPatience));
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    if (!is_away(code_of(error))) std::rethrow_exception(from_task(task, error));
    throw UnavailableError("From {}:\n{}", task, message_of(error));
  }
  const std::uint64_t before = incarnations_.at(task);
  if (now == before) return;
  std::int64_t step = 0;
  {
    MutexLock lock(mutex_);
    step = ++last_step_;
  }
  mark_lost(task, step);
  throw AbortedError(
      "RecvTensor expects a different device incarnation: {} vs. {}. Your worker job (\"{}\") was probably "
      "restarted. Check your worker job",
      before, now, task);
}

void MasterSession::lose(const std::string& task, const std::exception_ptr& why) {
  std::vector<std::shared_ptr<MasterStep>> steps;
  {
    MutexLock lock(mutex_);
    steps.assign(steps_.begin(), steps_.end());
  }
  for (const auto& step : steps) step->lose(task, why);
}

void MasterSession::wait_for_calls(Clock::time_point until) {
  MutexLock lock(mutex_);
  while (calls_ > 0 && Clock::now() < until) idle_.wait_until(mutex_, until);
}

void MasterSession::close(const Deadline& deadline) {
  std::vector<std::shared_ptr<MasterStep>> steps;
  std::vector<std::shared_ptr<Watcher>> watchers;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    steps.assign(steps_.begin(), steps_.end());
  }
  // Not under the lock: a step tells the session of tasks that it has lost.
  for (const auto& step : steps) step->cancel(std::make_exception_ptr(CancelledError("{}", kClosed)));
  closing_.request_stop();
  {
    MutexLock lock(mutex_);
    const auto begin = Clock::now();
    for (auto told = kStillWaiting; calls_ > 0;) {
      if (idle_.wait_until(mutex_, begin + told) || Clock::now() < begin + told) continue;
      log_warning("Session {} cannot close for {} s: {} calls of {} heed no cancelling", options_.handle,
                  told.count(), calls_, options_.client);
      told += kStillWaiting;
    }
    if (std::exchange(gone_, true)) return;
    watchers.assign(watchers_.begin(), watchers_.end());
    watchers_.clear();
  }
  plans_.forget_all();
  for (const auto& [task, incarnation] : incarnations_) {
    const bool own = task == environment_.task;
    if (!own) environment_.watches->leave(task);
    if (own || !environment_.watches->is_lost(task)) {
      try {
        environment_.peers->worker(task)->call<DeleteWorkerSession>(of_session(options_.handle),
                                                                    deadline.at_most(kPatience));
        continue;
      } catch (const std::exception& error) {
        log_debug("session {} stays on {}: {}", options_.handle, task, error.what());
      }
    }
    if (!own) environment_.watches->close_later(task, options_.handle);
  }
  for (const auto& watcher : watchers)
    watcher->end(std::make_exception_ptr(CancelledError("Session is closed.")));
}

std::shared_ptr<Call> MasterSession::watch(std::function<void(std::exception_ptr)> ended) {
  const Use use(*this);
  auto watcher = std::make_shared<Watcher>(weak_from_this(), std::move(ended));
  MutexLock lock(mutex_);
  watchers_.insert(watcher);
  return watcher;
}

MasterSession::Clock::duration MasterSession::idle() {
  MutexLock lock(mutex_);
  if (calls_ > 0 || !watchers_.empty()) return {};
  return Clock::now() - last_sign_;
}

}  // namespace kolo::detail
