#include <kolo/core/runtime/session_impl.h>

#include <set>
#include <string>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/passes/graph_passes.h>
#include <kolo/core/runtime/memory_report.h>

namespace kolo {
namespace {

constexpr char kSessionReset[] = "Session has been closed.";

std::optional<std::chrono::steady_clock::time_point> deadline_of(const RunOptions& options,
                                                                 const SessionConfig& config) {
  const std::int64_t milliseconds =
      options.timeout_in_ms > 0 ? options.timeout_in_ms : config.operation_timeout_in_ms;
  if (milliseconds <= 0) return std::nullopt;
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
}

}  // namespace

Session::Impl::Impl(Graph& graph, SessionConfig config)
    : intra_op_threads_(detail::intra_op_threads_of_process(config.intra_op_parallelism_threads)),
      state_(graph, std::move(config), intra_op_threads_),
      pools_(state_.config(), intra_op_threads_) {
  check_graph_options(state_.config().graph_options);
}

Session::Impl::~Impl() = default;

Session::Impl::Run::Run(Impl& session, const RunOptions& options)
    : session_(session),
      options_(options),
      pool_(session.pools_.at(options.inter_op_thread_pool)),
      deadline_(deadline_of(options, session.state_.config())) {
  MutexLock lock(session_.mutex_);
  if (session_.reset_) throw CancelledError("{}", kSessionReset);
  if (session_.closed_) throw FailedPreconditionError("Attempted to use a closed Session.");
  next_ = session_.runs_;
  if (next_ != nullptr) next_->previous_ = this;
  session_.runs_ = this;
}

Session::Impl::Run::~Run() {
  MutexLock lock(session_.mutex_);
  if (next_ != nullptr) next_->previous_ = previous_;
  (previous_ != nullptr ? previous_->next_ : session_.runs_) = next_;
  if (session_.runs_ == nullptr) session_.idle_.notify_all();
}

void Session::Impl::Run::execute(Plan& plan, Frame& frame, RunMetadata* metadata) {
  const bool traced = metadata != nullptr && options_.trace_level != TraceLevel::no_trace;
  StepOptions step{.pool = pool_,
                   .intra_op_threads = session_.intra_op_threads_,
                   .trace = traced ? &metadata->step_stats : nullptr,
                   .deadline = deadline_,
                   .cancellation = &cancellation_};
  if (!plan.agreements().empty())
    step.on_failure = [&plan](const std::exception_ptr& error) {
      detail::tell_others(plan.agreements(), error);
    };
  kolo::run_step(plan, frame, step);
  if (metadata != nullptr) metadata->memory = detail::memory_report(plan, frame);
  if (traced)
    for (const auto& agreement : plan.agreements()) agreement->append_trace(metadata->step_stats);
}

std::shared_ptr<Plan> Session::Impl::plan_for(const detail::StepRequest& request) {
  return plans_.get(detail::key_of(request),
                    [&] { return Plan::compile(detail::signature_of(request), state_); });
}

void Session::Impl::close(bool reset) {
  {
    MutexLock lock(mutex_);
    if (!closed_) reset_ = reset;
    closed_ = true;
    // An exception for each: it is destroyed by the thread that catches it.
    for (Run* run = runs_; run != nullptr; run = run->next_)
      run->cancellation_.cancel(std::make_exception_ptr(CancelledError(
          "{}", reset_ ? kSessionReset : "Step was cancelled by an explicit call to `Session::close()`.")));
    while (runs_ != nullptr) idle_.wait(mutex_);
  }
  plans_.clear();
  state_.clear();
}

}  // namespace kolo
