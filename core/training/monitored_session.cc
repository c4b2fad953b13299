#include <kolo/core/training/monitored_session.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <list>
#include <optional>
#include <stop_token>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/exit_code.h>
#include <kolo/core/base/launcher.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/base/text.h>
#include <kolo/core/device/engine_book.h>
#include <kolo/core/runtime/compare_ranks.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session_state.h>
#include <kolo/core/training/cluster_start.h>
#include <kolo/core/training/common_start.h>
#include <kolo/core/training/default_hooks.h>
#include <kolo/core/training/drift_check.h>
#include <kolo/core/training/hook_internal.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/core/training/rank_state_internal.h>
#include <kolo/core/training/rendezvous.h>

namespace kolo {
namespace {

constexpr char kMadeAgain[] = "the session is made again after an error:";
constexpr char kPreempted[] =
    "An error was raised. This may be due to a preemption in a connected worker or parameter server. The "
    "current session will be closed and a new session will be created. Error:";

using Hooks = std::vector<std::shared_ptr<SessionRunHook>>;

}  // namespace

class MonitoredTrainingSession::Impl {
 public:
  Impl(Graph& graph, MonitoredTrainingSessionOptions options)
      : graph_(graph),
        options_(std::move(options)),
        wait_{.poll = std::chrono::duration<double>(options_.recovery_wait_secs),
              .most = std::chrono::duration<double>(options_.max_wait_secs),
              .until = {}},
        group_(options_.master.empty() ? world_group() : group_of_one()),
        is_chief_(group_.rank() == 0 && options_.is_chief),
        was_finalized_(graph.is_finalized()),
        exceptions_at_start_(std::uncaught_exceptions()) {
    if (options_.master.empty()) detail::require_init_under_launcher("MonitoredTrainingSession");
    install_stop_signals();
    if (!options_.checkpoint_dir.empty()) {
      propose_record_folder(options_.checkpoint_dir);
      propose_engine_folder(options_.checkpoint_dir);
    }
    try {
      start();
    } catch (...) {
      release();
      throw;
    }
  }

  std::vector<Tensor> run(const SessionRunArgs& args, RunMetadata* metadata) {
    if (closed_ || never_began_ || rendezvous_->is_over())
      throw FailedPreconditionError("Run called even after should_stop requested.");
    for (;;) {
      try {
        throw_error_of_thread();
        return run_once(args, metadata);
      } catch (const OutOfRangeError&) {
        if (!rendezvous_->end_of_data(message_of(std::current_exception()))) throw;
        return std::vector<Tensor>(args.fetches.size());
      } catch (const Error& error) {
        if (is_stopped_wait(error)) return std::vector<Tensor>(args.fetches.size());
        if (group_.size() > 1 || !is_recoverable(error)) {
          report_failure(std::current_exception());
          throw;
        }
        recover(error);
        if (never_began_) return std::vector<Tensor>(args.fetches.size());
      } catch (...) {
        report_failure(std::current_exception());
        throw;
      }
    }
  }

  bool should_stop() {
    if (closed_ || never_began_) return true;
    const bool was_stopped = coordinator_->should_stop();  // before it is asked for the error that did so
    try {
      throw_error_of_thread();
    } catch (const OutOfRangeError&) {
      if (!rendezvous_->end_of_data(message_of(std::current_exception()))) throw;
    } catch (const Error& error) {
      if (group_.size() > 1 || !is_recoverable(error)) fail_and_rethrow();
      recover(error);
      return never_began_ || rendezvous_->should_stop();
    } catch (...) {
      fail_and_rethrow();
    }
    return rendezvous_->should_stop() || (group_.size() == 1 && was_stopped);
  }
  bool stopped_on_request() const { return never_began_ || rendezvous_->stopped_on_request(); }
  std::int64_t global_step() const { return last_step_; }
  Session& session() { return *session_; }

  void close() {
    if (closed_) throw FailedPreconditionError("Session is already closed.");
    closed_ = true;
    try {
      if (!never_began_) end_training();
    } catch (...) {
      release();
      throw;
    }
    detail::note_end_of_training(stopped_on_request(), last_step_);
    release();
  }

  void close_from_destructor() {
    if (closed_) return;
    try {
      if (std::uncaught_exceptions() > exceptions_at_start_ && !rendezvous_->has_failed())
        rendezvous_->fail("an exception left the training loop");
      close();
    } catch (const std::exception& error) {
      log_error("closing the training session failed: {}", error.what());
    }
  }

 private:
  // Nothing is saved after an error; one that comes with the end is told all the same.
  void end_training() {
    try {
      throw_error_of_thread();
    } catch (const OutOfRangeError&) {
      if (!rendezvous_->end_of_data(message_of(std::current_exception()))) throw;
    } catch (...) {
      if (!rendezvous_->has_failed()) report_failure(std::current_exception());
      throw;
    }
    if (rendezvous_->leave()) end_hooks();
    join_threads();
    throw_error_of_thread();
  }

  void throw_error_of_thread() {
    if (const std::exception_ptr error = coordinator_->take_error()) std::rethrow_exception(error);
  }

  // Those that do not end wait in runs, perhaps: closing the session cancels them.
  void join_threads() {
    try {
      coordinator_->join(std::chrono::milliseconds(std::llround(options_.stop_grace_period_secs * 1000)));
    } catch (const Error& error) {
      log_warning("{}", error.what());
    }
  }

  // Its threads end before its variables go.
  void end_session() {
    if (session_) {
      join_threads();
      session_->close();
    }
    coordinator_ = std::make_unique<Coordinator>();
  }

  [[noreturn]] void fail_and_rethrow() {
    report_failure(std::current_exception());
    throw;
  }

  void start() {
    detail::share_failure(group_, [&] {
      detail::check_options(options_);
      begin_hooks();
      global_step_ = find_global_step(graph_);
      if (global_step_ && !graph_.is_finalized()) step_of_run_ = detail::StepOfRun(graph_, global_step_);
      graph_.finalize();
    });
    if (group_.size() > 1) return create_session();
    create_until_it_stands();
  }

  // A new session may fail as the old one did. On a cluster a task is given time to come back. After a signal
  // there is one attempt, which a cluster's session bounds: it may find values that are to be saved.
  void create_until_it_stands() {
    wait_.until = std::chrono::steady_clock::now() +
                  std::chrono::duration_cast<std::chrono::steady_clock::duration>(wait_.most);
    for (bool is_first = true;; is_first = false) {
      try {
        if (!is_first && on_cluster()) detail::pause(std::chrono::seconds(1), "making the session again");
        return create_session();
      } catch (const Error& error) {
        if (session_ && rendezvous_ && is_stopped_wait(error)) {
          log_info("{}; this worker has nothing to save", error.what());
          never_began_ = true;
          return;
        }
        if (!is_recoverable(error)) throw;
        log_warning("{} {}",
                    on_cluster() ? "An error was raised while a session was being created." : kMadeAgain,
                    error.what());
      }
    }
  }

  // Rank 0's own hooks come first: its folder is known to be writable before any other hook acts. The saver
  // is made after every begin(), when all variables are there.
  void begin_hooks() {
    if (is_chief_) hooks_ = options_.chief_only_hooks;
    chief_hooks_ = hooks_.size();
    hooks_.insert(hooks_.end(), options_.hooks.begin(), options_.hooks.end());
    for (const auto& hook : hooks_) hook->begin(graph_);
    if (!is_chief_) return;
    saver_ = options_.scaffold.saver;
    for (const auto& hook : detail::make_summary_hooks(options_)) add_for_chief(hook);
    if (!detail::saves(options_)) return;
    if (!saver_)
      saver_ = std::make_shared<Saver>(
          graph_, SaverOptions{.max_to_keep = options_.max_to_keep, .sharded = options_.sharded});
    add_for_chief(detail::make_saver_hook(options_, saver_));
  }

  // Behind the chief's others.
  void add_for_chief(const std::shared_ptr<SessionRunHook>& hook) {
    hook->begin(graph_);
    hooks_.insert(hooks_.begin() + static_cast<std::ptrdiff_t>(chief_hooks_++), hook);
  }

  void create_session() {
    detail::share_failure(group_, [&] {
      end_session();
      if (session_) *session_ = Session(graph_, options_.master, options_.config);
      else session_ = std::make_unique<Session>(graph_, options_.master, options_.config);
      rendezvous_ = std::make_unique<detail::Rendezvous>(
          *session_, group_, on_cluster() ? StepVotes() : detail::state_of(*session_).votes(),
          options_.check_drift_steps.value_or(detail::check_drift_steps()));
    });
    // The training steps first: where a gradient differs, its variable does too.
    rendezvous_->compare();
    detail::compare_variables(group_, graph_, options_.saved_state);
    detail::compare_precision(group_, graph_options_of(options_.config).precision);
    std::optional<std::string> restored;
    detail::share_failure(group_, [&] {
      restored = give_values();
      if (waits_for_chief()) return;
      if (is_chief_) detail::require_ready_for_local_init(*session_, options_.scaffold);
      detail::initialize_local_variables(*session_, options_.scaffold);
      if (is_chief_) detail::require_ready(*session_, options_.scaffold);
    });
    detail::broadcast_state(group_, *session_, options_.saved_state);
    detail::RankLayout layout = detail::compare_rank_states(group_, *session_);
    detail::scatter_checkpoint(group_, *session_, layout, restored);
    rendezvous_->agree_on_saving(
        std::move(layout),
        std::any_of(hooks_.begin(), hooks_.end(), [](const auto& hook) { return hook->saves(); }));
    detail::share_failure(group_, [&] { note_step(); });
    if (global_step_)
      report_completed_step(last_step_);  // for kolorun, which asks whether starts get further
    const auto gathered = rendezvous_->gather_at_ends();
    call_after_create_session(0, chief_hooks_, restored, gathered.get());
    call_after_create_session(chief_hooks_, hooks_.size(), restored, gathered.get());
  }

  // Returns the checkpoint that they come from.
  std::optional<std::string> give_values() {
    if (waits_for_chief()) detail::wait_until_ready(*session_, options_.scaffold, wait_);
    if (!is_chief_) return {};
    if (options_.adopt && detail::has_values(*session_)) return {};
    return detail::restore_or_initialize(*session_, options_, saver_);
  }

  void note_step() {
    if (global_step_) note_step(read_global_step(*session_, global_step_));
  }
  void note_step(std::int64_t step) {
    last_step_ = step;
    rendezvous_->set_step(step + 1);
  }

  void call_after_create_session(std::size_t begin, std::size_t end,
                                 const std::optional<std::string>& restored, const GatheredState* gathered) {
    detail::share_failure(group_, [&] {
      for (std::size_t i = begin; i < end; ++i) {
        if (restored) hooks_[i]->after_restore(*session_, *restored);
        hooks_[i]->after_create_session(*session_, *coordinator_);
        hooks_[i]->save(*session_, gathered);
      }
    });
  }

  void end_hooks() {
    const auto gathered = rendezvous_->gather_at_ends();
    for (const auto& hook : hooks_) {
      hook->save(*session_, gathered.get());
      hook->end(*session_);
    }
  }

  std::vector<Tensor> run_once(const SessionRunArgs& args, RunMetadata* callers) {
    RunContext context(*session_, args, global_step_ ? std::optional(last_step_) : std::nullopt);
    detail::MergedRun merged(args);
    for (const auto& hook : hooks_) merged.add(hook->before_run(context));
    const Output step_read = step_of_run_.behind(merged.args().fetches);
    if (step_read) merged.add({.fetches = {step_read}, .feeds = {}, .options = {}});
    if (coordinator_->should_stop()) context.request_stop();
    rendezvous_->send_wishes(context);

    RunOptions options = merged.args().options;
    const bool traced = options.trace_level != TraceLevel::no_trace;
    std::stop_source stop;  // by the caller, a hook, or a thread's error
    const auto stop_run = [&stop] { stop.request_stop(); };
    std::list<std::stop_callback<decltype(stop_run)>> by_others;
    for (const std::stop_token& token : merged.stop_tokens()) by_others.emplace_back(token, stop_run);
    by_others.emplace_back(coordinator_->error_token(), stop_run);
    options.stop_token = stop.get_token();
    RunMetadata own;
    RunMetadata& metadata = callers == nullptr ? own : *callers;
    std::vector<Tensor> results;
    try {
      results = session_->run(merged.args().fetches, merged.args().feeds, options,
                              traced || callers != nullptr ? &metadata : nullptr);
    } catch (const Error& error) {
      if (error.code() == Code::cancelled) throw_error_of_thread();
      for (const auto& hook : hooks_) hook->after_failure(context, merged.args(), error);
      if (error.code() != Code::cancelled || !context.stop_requested() || group_.size() > 1) throw;
      rendezvous_->decide(context);
      return std::vector<Tensor>(args.fetches.size());
    }
    if (step_read) note_step(step_of(merged.results_of_hook(hooks_.size(), results).front()));
    else note_step();
    if (global_step_) {
      context.set_global_step(last_step_);
      report_completed_step(last_step_);
    }
    const auto gathered = rendezvous_->gather_if_agreed();
    for (std::size_t i = 0; i < hooks_.size(); ++i)
      hooks_[i]->after_run(context, {.results = merged.results_of_hook(i, results),
                                     .trace = traced ? &metadata.step_stats : nullptr,
                                     .gathered = gathered.get()});
    rendezvous_->decide(context);
    return merged.results_of_caller(results);
  }

  bool is_recoverable(const Error& error) const {
    return options_.recovers && (error.code() == Code::aborted || error.code() == Code::unavailable);
  }

  // A worker that waits for its chief ends in order when it is told to.
  bool is_stopped_wait(const Error& error) const {
    return error.code() == Code::cancelled && waits_for_chief() && stop_signal_received();
  }

  bool on_cluster() const { return !options_.master.empty(); }
  bool waits_for_chief() const { return on_cluster() && !is_chief_; }

  void recover(const Error& first_error) {
    log_warning("{} {}", on_cluster() ? kPreempted : kMadeAgain, first_error.what());
    if (!coordinator_->should_stop()) coordinator_->request_stop(std::current_exception());
    try {
      create_until_it_stands();
    } catch (const Error&) {
      rendezvous_->give_up();
      throw;
    }
  }

  // A single rank may go on after an error that its caller has understood.
  void report_failure(const std::exception_ptr& error) {
    if (group_.size() > 1) rendezvous_->fail(message_of(error));
  }

  // The saver's hook goes, and with it its hold on the folder, though this object may live on.
  void release() {
    hooks_.clear();
    if (coordinator_) coordinator_->request_stop();
    if (session_) session_->close();
    coordinator_.reset();
    if (!was_finalized_) graph_.unfinalize();
  }

  Graph& graph_;
  MonitoredTrainingSessionOptions options_;
  detail::ReadyWait wait_;
  Group& group_;
  const bool is_chief_;
  bool was_finalized_;
  int exceptions_at_start_;
  Hooks hooks_;
  std::size_t chief_hooks_ = 0;   // the first ones of hooks_
  std::shared_ptr<Saver> saver_;  // rank 0's
  Variable global_step_;
  detail::StepOfRun step_of_run_;  // empty where the graph was final before
  std::int64_t last_step_ = -1;
  std::unique_ptr<Session> session_;
  std::unique_ptr<detail::Rendezvous> rendezvous_;  // of the session
  std::unique_ptr<Coordinator> coordinator_;        // of the session; its threads end before it
  bool closed_ = false;
  bool never_began_ = false;  // a stop came while this session, or its successor, waited for the chief
};

MonitoredTrainingSession::MonitoredTrainingSession(Graph& graph, MonitoredTrainingSessionOptions options)
    : impl_(std::make_unique<Impl>(graph, std::move(options))) {}

MonitoredTrainingSession::~MonitoredTrainingSession() { impl_->close_from_destructor(); }

std::vector<Tensor> MonitoredTrainingSession::run(const std::vector<Fetch>& fetches, const Feeds& feeds,
                                                  const RunOptions& options, RunMetadata* metadata) {
  return impl_->run({.fetches = fetches, .feeds = feeds, .options = options}, metadata);
}

bool MonitoredTrainingSession::should_stop() { return impl_->should_stop(); }
bool MonitoredTrainingSession::stopped_on_request() const { return impl_->stopped_on_request(); }
std::int64_t MonitoredTrainingSession::global_step() const { return impl_->global_step(); }
Session& MonitoredTrainingSession::session() { return impl_->session(); }
void MonitoredTrainingSession::close() { impl_->close(); }

}  // namespace kolo
