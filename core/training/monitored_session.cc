#include <kolo/core/training/monitored_session.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <set>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/message_of.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/runtime/compare_ranks.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/training/common_start.h>
#include <kolo/core/training/hook_internal.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/core/training/rank_state_internal.h>
#include <kolo/core/training/step_stop.h>

namespace kolo {
namespace {

constexpr double kDefaultSaveSecs = 600;

using Hooks = std::vector<std::shared_ptr<SessionRunHook>>;

void check(const MonitoredTrainingSessionOptions& options) {
  if (options.save_checkpoint_secs && options.save_checkpoint_steps)
    throw InvalidArgumentError("Can not provide both every_secs and every_steps.");
  std::set<std::string> names;
  for (const SavedState& state : options.saved_state)
    if (!names.insert(state.name).second)
      throw InvalidArgumentError("two saved states have the name \"{}\"", state.name);
}

bool saves(const MonitoredTrainingSessionOptions& options) {
  return !options.checkpoint_dir.empty() && options.save_checkpoint_secs != 0.0 &&
         options.save_checkpoint_steps != 0;
}

std::shared_ptr<SessionRunHook> make_saver_hook(const MonitoredTrainingSessionOptions& options,
                                                const std::shared_ptr<Saver>& saver) {
  CheckpointSaverOptions saving{.checkpoint_dir = options.checkpoint_dir,
                                .save_secs = options.save_checkpoint_secs,
                                .save_steps = options.save_checkpoint_steps,
                                .saver = saver,
                                .saved_state = options.saved_state};
  if (!saving.save_secs && !saving.save_steps) saving.save_secs = kDefaultSaveSecs;
  return std::make_shared<CheckpointSaverHook>(std::move(saving));
}

}  // namespace

class MonitoredTrainingSession::Impl {
 public:
  Impl(Graph& graph, MonitoredTrainingSessionOptions options)
      : graph_(graph),
        options_(std::move(options)),
        group_(world_group()),
        was_finalized_(graph.is_finalized()),
        exceptions_at_start_(std::uncaught_exceptions()) {
    install_stop_signals();
    try {
      start();
    } catch (...) {
      release();
      throw;
    }
  }

  std::vector<Tensor> run(const SessionRunArgs& args) {
    if (stopping_) throw FailedPreconditionError("Run called even after should_stop requested.");
    for (;;) {
      try {
        return run_once(args);
      } catch (const OutOfRangeError&) {
        // Behind the reductions of a step after which all save, it is no end for the others: they come to
        // save.
        const bool others_save = is_spread_ && stop_->take_save();
        if (others_save && !stop_->is_end_of_data()) {
          fail(message_of(std::current_exception()), others_save);
          throw;
        }
        end_of_data();
        return std::vector<Tensor>(args.fetches.size());
      } catch (const Error& error) {
        if (group_.size() > 1 || !is_recoverable(error)) {
          report_failure(std::current_exception());
          throw;
        }
        recover(error);
      } catch (...) {
        report_failure(std::current_exception());
        throw;
      }
    }
  }

  bool should_stop() {
    if (stop_->is_alone() && !stopping_ && stop_signal_received()) stopping_ = stop_asked_ = true;
    return stopping_;
  }
  bool stopped_on_request() const { return stop_asked_ && !hooks_asked_; }
  std::int64_t global_step() const { return last_step_; }
  Session& session() { return *session_; }

  void close() {
    if (closed_) throw FailedPreconditionError("Session is already closed.");
    closed_ = true;
    stopping_ = true;
    try {
      if (!failed_) {
        stop_->end_of_data();
        const auto gathered = gathered_if(saves_);
        for (const auto& hook : hooks_) hook->end(*session_);
      } else if (saves_ && failed_unseen_) {
        GatheredState::refuse(failure_, group_);
      }
    } catch (...) {
      release();
      throw;
    }
    release();
  }

  void close_from_destructor() {
    if (closed_) return;
    try {
      if (std::uncaught_exceptions() > exceptions_at_start_ && !failed_)
        fail("an exception left the training loop");
      close();
    } catch (const std::exception& error) {
      log_error("closing the training session failed: {}", error.what());
    }
  }

 private:
  void start() {
    detail::share_failure(group_, [&] {
      check(options_);
      begin_hooks();
      global_step_ = find_global_step(graph_);
      graph_.finalize();
    });
    if (group_.size() > 1) return create_session();
    for (;;) {
      try {
        return create_session();
      } catch (const Error& error) {
        if (!is_recoverable(error)) throw;
        announce_recovery(error);
      }
    }
  }

  // Rank 0's own hooks come first: its folder is known to be writable before any other hook acts. The saver
  // is made after every begin(), when all variables are there.
  void begin_hooks() {
    if (group_.rank() == 0) hooks_ = options_.chief_only_hooks;
    const auto end_of_chiefs = static_cast<std::ptrdiff_t>(hooks_.size());
    hooks_.insert(hooks_.end(), options_.hooks.begin(), options_.hooks.end());
    for (const auto& hook : hooks_) hook->begin(graph_);
    chief_hooks_ = static_cast<std::size_t>(end_of_chiefs);
    if (group_.rank() != 0 || !saves(options_)) return;
    saver_ = std::make_shared<Saver>(graph_, SaverOptions{.max_to_keep = options_.max_to_keep});
    const auto saver_hook = make_saver_hook(options_, saver_);
    saver_hook->begin(graph_);
    hooks_.insert(hooks_.begin() + end_of_chiefs, saver_hook);
    ++chief_hooks_;
  }

  void create_session() {
    detail::share_failure(group_, [&] {
      session_ = std::make_unique<Session>(graph_, options_.config);
      stop_ = std::make_unique<detail::StepStop>(session_->agreements(), group_.size());
    });
    // The training steps first: where a gradient differs, its variable does too.
    const bool some_of_parts = detail::compare_number_of_schedules(group_, stop_->count_by_ranks());
    if (some_of_parts) detail::share_failure(group_, [&] { stop_->compare(); });
    else stop_->compare();
    detail::compare_variables(group_, graph_, options_.saved_state);
    std::optional<std::string> restored;
    detail::share_failure(group_, [&] {
      if (group_.rank() == 0)
        restored =
            detail::restore_or_initialize(*session_, options_.checkpoint_dir, saver_, options_.saved_state);
      detail::run_initializers(*session_, local_variables(graph_));
    });
    detail::broadcast_state(group_, *session_, options_.saved_state);
    detail::scatter_checkpoint(group_, *session_, restored);
    agree_on_saving();
    note_step();
    const auto gathered = gathered_if(saves_);
    call_after_create_session(0, chief_hooks_);
    call_after_create_session(chief_hooks_, hooks_.size());
  }

  // Where a checkpoint needs all ranks they must know when one is written.
  void agree_on_saving() {
    is_spread_ = is_spread_over_ranks(*session_, group_);
    if (!is_spread_) return;
    const bool some_hook_saves =
        std::any_of(hooks_.begin(), hooks_.end(), [](const auto& hook) { return hook->saves(); });
    saves_ = group_.broadcast(some_hook_saves ? "saves" : "", 0) == "saves";
  }

  std::unique_ptr<const GatheredState> gathered_if(bool wanted) {
    return wanted ? std::make_unique<const GatheredState>(*session_, group_) : nullptr;
  }

  void note_step() {
    if (!global_step_) return;
    last_step_ = read_global_step(*session_, global_step_);
    stop_->set_step(last_step_ + 1);
  }

  void call_after_create_session(std::size_t begin, std::size_t end) {
    detail::share_failure(group_, [&] {
      for (std::size_t i = begin; i < end; ++i) hooks_[i]->after_create_session(*session_);
    });
  }

  std::vector<Tensor> run_once(const SessionRunArgs& args) {
    RunContext context(*session_, args);
    detail::MergedRun merged(args);
    for (const auto& hook : hooks_) merged.add(hook->before_run(context));
    if (stop_signal_received() || context.stop_requested() || context.last_step_announced()) stop_->ask();
    if (is_spread_ && context.save_announced()) stop_->ask_to_save();

    RunMetadata metadata;
    const bool traced = merged.args().trace;
    const auto results =
        session_->run(merged.args().fetches, merged.args().feeds,
                      {.trace_level = traced ? TraceLevel::full_trace : TraceLevel::no_trace}, &metadata);
    note_step();
    if (global_step_) report_completed_step(last_step_);
    const auto gathered = gathered_if(is_spread_ && stop_->take_save());
    for (std::size_t i = 0; i < hooks_.size(); ++i)
      hooks_[i]->after_run(context,
                           {merged.results_of_hook(i, results), traced ? &metadata.step_stats : nullptr});
    decide_to_stop(context);
    return merged.results_of_caller(results);
  }

  void decide_to_stop(const RunContext& context) {
    hooks_asked_ = hooks_asked_ || context.stop_requested() || context.last_step_announced();
    if (stop_->is_alone()) {
      stop_asked_ = stop_signal_received() || context.stop_requested();
    } else {
      stop_asked_ = stop_->is_agreed();
      if (!stop_asked_ && context.stop_requested()) stop_->ask();
    }
    stopping_ = stop_asked_;
  }

  static bool is_recoverable(const Error& error) {
    return error.code() == Code::aborted || error.code() == Code::unavailable;
  }

  static void announce_recovery(const Error& error) {
    log_warning("the session is made again after an error: {}", error.what());
  }

  // The new session may fail as the old one did; it is made until it stands.
  void recover(const Error& first_error) {
    announce_recovery(first_error);
    for (;;) {
      try {
        session_->close();
        return create_session();
      } catch (const Error& error) {
        if (!is_recoverable(error)) {
          failed_ = stopping_ = true;
          throw;
        }
        announce_recovery(error);
      }
    }
  }

  void end_of_data() {
    stopping_ = true;
    try {
      stop_->end_of_data();
    } catch (...) {
      failed_ = true;
      throw;
    }
  }

  // A single rank may go on after an error that its caller has understood.
  void report_failure(const std::exception_ptr& error) {
    if (group_.size() > 1) fail(message_of(error));
  }

  // Before an agreed save, and after an agreed end, the others cannot be told of it in a step: they are told
  // where they come to save.
  void fail(const std::string& text) { fail(text, is_spread_ && stop_->take_save()); }
  void fail(const std::string& text, bool others_save) {
    failed_ = stopping_ = true;
    if (others_save) GatheredState::refuse(text, group_);
    failure_ = text;
    stop_->fail(text);
    // Behind that, for an end may have been agreed upon in the very step that told of the failure.
    failed_unseen_ = stop_->is_agreed_by_all();
  }

  void release() {
    if (session_) session_->close();
    if (!was_finalized_) graph_.unfinalize();
  }

  Graph& graph_;
  MonitoredTrainingSessionOptions options_;
  Group& group_;
  bool was_finalized_;
  int exceptions_at_start_;
  Hooks hooks_;
  std::size_t chief_hooks_ = 0;   // the first ones of hooks_
  std::shared_ptr<Saver> saver_;  // rank 0's
  Variable global_step_;
  std::int64_t last_step_ = -1;
  std::unique_ptr<Session> session_;
  std::unique_ptr<detail::StepStop> stop_;
  bool stopping_ = false;
  bool stop_asked_ = false;
  bool hooks_asked_ = false;
  bool is_spread_ = false;  // over the ranks: a checkpoint needs all of them
  bool saves_ = false;      // and one is written at the start and at the end
  bool failed_ = false;
  bool failed_unseen_ = false;  // the others have left in good order
  std::string failure_;
  bool closed_ = false;
};

MonitoredTrainingSession::MonitoredTrainingSession(Graph& graph, MonitoredTrainingSessionOptions options)
    : impl_(std::make_unique<Impl>(graph, std::move(options))) {}

MonitoredTrainingSession::~MonitoredTrainingSession() { impl_->close_from_destructor(); }

std::vector<Tensor> MonitoredTrainingSession::run(const std::vector<Fetch>& fetches, const Feeds& feeds) {
  return impl_->run({.fetches = fetches, .feeds = feeds});
}

bool MonitoredTrainingSession::should_stop() { return impl_->should_stop(); }
bool MonitoredTrainingSession::stopped_on_request() const { return impl_->stopped_on_request(); }
std::int64_t MonitoredTrainingSession::global_step() const { return impl_->global_step(); }
Session& MonitoredTrainingSession::session() { return impl_->session(); }
void MonitoredTrainingSession::close() { impl_->close(); }

}  // namespace kolo
