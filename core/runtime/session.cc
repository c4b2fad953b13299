#include <kolo/core/runtime/session.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/runtime/compile.h>
#include <kolo/core/runtime/remote_session.h>
#include <kolo/core/runtime/session_internal.h>

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
      deadline_(deadline_of(options, session.state_.config())),
      on_stop_(options.stop_token, Cancel{cancellation_}) {
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

void Session::Impl::Run::Cancel::operator()() const {
  cancellation.cancel(std::make_exception_ptr(CancelledError("The run was stopped by its stop_token.")));
}

void Session::Impl::Run::execute(Plan& plan, Frame& frame, RunMetadata* metadata) {
  const bool traced = metadata != nullptr && options_.trace_level != TraceLevel::no_trace;
  StepOptions step{.pool = pool_,
                   .intra_op_threads = session_.intra_op_threads_,
                   .trace = traced ? &metadata->step_stats : nullptr,
                   .deadline = deadline_,
                   .cancellation = &cancellation_};
  if (!plan.votes().empty()) {
    step.votes = &plan.votes();
    step.on_failure = [&plan](const std::exception_ptr& error) { detail::tell_others(plan.votes(), error); };
  }
  kolo::run_step(plan, frame, step);
  if (metadata != nullptr) {
    metadata->memory = detail::memory_report(plan, frame);
    metadata->kernels = detail::kernel_choices(plan);
  }
  if (traced)
    for (const auto& vote : plan.votes()) vote->append_trace(metadata->step_stats);
}

std::shared_ptr<Plan> Session::Impl::plan_for(const detail::StepRequest& request) {
  const DeviceSet* const devices = &state_.devices();
  return plans_.get(detail::key_of(request, devices),
                    [&] { return compile_plan(detail::signature_of(request, devices), state_); });
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

namespace {

// For reset(): the sessions of this process that have not been destroyed. A session takes itself out before
// it goes.
template <typename Impl>
struct OpenSessions {
  Mutex mutex;
  std::vector<std::weak_ptr<Impl>> all KOLO_GUARDED_BY(mutex);

  static OpenSessions& instance() {
    static OpenSessions sessions;
    return sessions;
  }
  void add(const std::shared_ptr<Impl>& session) {
    MutexLock lock(mutex);
    std::erase_if(all, [](const std::weak_ptr<Impl>& known) { return known.expired(); });
    all.push_back(session);
  }
  std::vector<std::weak_ptr<Impl>> take() {
    MutexLock lock(mutex);
    return std::exchange(all, {});
  }
};

}  // namespace

Session::Session(Graph& graph, SessionConfig config)
    : graph_(&graph), impl_(std::make_shared<Impl>(graph, std::move(config))) {
  OpenSessions<Impl>::instance().add(impl_);
}

Session::Session(Target target, Graph& graph, SessionConfig config)
    : graph_(&graph), target_(std::move(target.name)) {
  if (target_.empty()) *this = Session(graph, std::move(config));
  else remote_ = detail::remote_session_factory(target_).make(graph, target_, config);
}

Session::~Session() { close(); }

Session& Session::operator=(Session&& other) noexcept {
  std::swap(graph_, other.graph_);
  std::swap(target_, other.target_);
  std::swap(impl_, other.impl_);
  std::swap(remote_, other.remote_);
  other.close();
  return *this;
}

Session::Impl& Session::local(const char* what) const {
  if (impl_) return *impl_;
  throw UnimplementedError("{}: not of a session on {}, only of one in this process", what, target_);
}

std::vector<Tensor> Session::run_step(const std::vector<Fetch>& fetches, const Feeds& feeds,
                                      const Targets& targets, const RunOptions& options,
                                      RunMetadata* metadata) {
  if (remote_)
    return remote_->run(detail::checked_request(graph(), fetches, feeds, targets), options, metadata);
  Impl::Run run(*impl_, options);
  const detail::StepRequest request = detail::checked_request(graph(), fetches, feeds, targets);
  const std::shared_ptr<Plan> plan = impl_->plan_for(request);
  std::vector<Tensor> results;
  const auto feed = [&](int i) -> const Tensor& { return request.feeds[static_cast<std::size_t>(i)].second; };
  const auto take = [&](const Frame& frame) {
    detail::check_results(*plan, frame, request);
    for (std::size_t i = 0; i < fetches.size(); ++i) {
      const int value = plan->fetches()[i];
      results.push_back(value < 0 ? Tensor() : frame.values[static_cast<std::size_t>(value)].clone());
    }
  };
  run.step(*plan, feed, take, metadata);
  return results;
}

std::vector<KernelChoice> Session::kernels(const std::vector<Fetch>& fetches, const Feeds& feeds) {
  const RunOptions options;
  Impl& session = local("kernels()");
  const Impl::Run run(session, options);  // close() waits for it
  return detail::kernel_choices(*session.plan_for(detail::checked_request(graph(), fetches, feeds, {})));
}

void Session::close() {
  if (impl_) impl_->close();
  if (remote_) remote_->close();
}

void Session::reset(const std::string& target, const std::vector<std::string>& containers,
                    const SessionConfig& config) {
  if (!target.empty()) return detail::remote_session_factory(target).reset(target, containers, config);
  for (const auto& weak : OpenSessions<Impl>::instance().take())
    if (const auto session = weak.lock()) session->close(true);
}

std::vector<DeviceAttributes> Session::list_devices() const {
  if (remote_) return remote_->list_devices();
  std::vector<DeviceAttributes> devices;
  for (const auto& device : impl_->state().devices().devices()) devices.push_back(device->attributes());
  return devices;
}

const SessionConfig& Session::config() const { return impl_ ? impl_->state().config() : remote_->config(); }
std::map<std::string, std::uint64_t> Session::random_positions() const {
  return remote_ ? remote_->random_positions() : impl_->state().random_positions();
}
void Session::set_random_positions(const std::map<std::string, std::uint64_t>& positions) {
  if (remote_) return remote_->set_random_positions(positions);
  impl_->state().set_random_positions(positions);
}
int Session::intra_op_threads() const { return local("intra_op_threads()").state().intra_op_threads(); }
int Session::inter_op_threads() const { return local("inter_op_threads()").pools().threads(); }

detail::SessionState& detail::state_of(Session& session) {
  return session.local("what one process keeps of a session").state();
}

detail::RemoteSession* detail::remote_of(Session& session) { return session.remote_.get(); }

}  // namespace kolo
