#include <kolo/core/runtime/session.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/runtime/compile.h>
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
  if (!plan.votes().empty())
    step.on_failure = [&plan](const std::exception_ptr& error) { detail::tell_others(plan.votes(), error); };
  kolo::run_step(plan, frame, step);
  if (metadata != nullptr) {
    metadata->memory = detail::memory_report(plan, frame);
    metadata->kernels = detail::kernel_choices(plan);
  }
  if (traced)
    for (const auto& vote : plan.votes()) vote->append_trace(metadata->step_stats);
}

std::shared_ptr<Plan> Session::Impl::plan_for(const detail::StepRequest& request) {
  return plans_.get(detail::key_of(request),
                    [&] { return compile_plan(detail::signature_of(request), state_); });
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
    : impl_(std::make_shared<Impl>(graph, std::move(config))) {
  OpenSessions<Impl>::instance().add(impl_);
}
Session::~Session() { impl_->close(); }

Session& Session::operator=(Session&& other) noexcept {
  std::swap(impl_, other.impl_);
  other.impl_->close();
  return *this;
}

std::vector<Tensor> Session::run_step(const std::vector<Fetch>& fetches, const Feeds& feeds,
                                      const Targets& targets, const RunOptions& options,
                                      RunMetadata* metadata) {
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
  const Impl::Run run(*impl_, options);  // close() waits for it
  return detail::kernel_choices(*impl_->plan_for(detail::checked_request(graph(), fetches, feeds, {})));
}

void Session::close() { impl_->close(); }

void Session::reset(const std::string& target, const std::vector<std::string>& /*containers*/) {
  if (!target.empty())
    throw UnimplementedError("reset of \"{}\": only the sessions of this process, \"\", can be reset",
                             target);
  for (const auto& weak : OpenSessions<Impl>::instance().take())
    if (const auto session = weak.lock()) session->close(true);
}

Graph& Session::graph() const { return impl_->state().graph(); }
const SessionConfig& Session::config() const { return impl_->state().config(); }
std::map<std::string, std::uint64_t> Session::random_positions() const {
  return impl_->state().random_positions();
}
void Session::set_random_positions(const std::map<std::string, std::uint64_t>& positions) {
  impl_->state().set_random_positions(positions);
}
int Session::intra_op_threads() const { return impl_->state().intra_op_threads(); }
int Session::inter_op_threads() const { return impl_->pools().threads(); }

std::vector<std::string> report_uninitialized_variables(Session& session,
                                                        const std::vector<Variable>& variables) {
  detail::SessionState& state = detail::state_of(session);
  std::vector<std::string> names;
  for (const Variable& variable : variables)
    if (!state.is_initialized(*variable.ref().node)) names.push_back(variable.name());
  return names;
}

std::vector<std::string> report_uninitialized_variables(Session& session) {
  std::vector<Variable> all = global_variables(session.graph());
  for (const Variable& variable : local_variables(session.graph())) all.push_back(variable);
  return report_uninitialized_variables(session, all);
}

detail::SessionState& detail::state_of(Session& session) { return session.impl_->state(); }

class Callable::Impl {
 public:
  Impl(std::shared_ptr<Session::Impl> session, const CallableSignature& signature, const RunOptions& options)
      : session_(std::move(session)), options_(options) {
    const Graph& graph = session_->state().graph();
    // Checked without feeds: their values come with the calls.
    request_ = detail::checked_request(graph, signature.fetches, {}, signature.targets);
    for (const FeedTarget& target : signature.feeds) {
      const Output tensor = detail::checked_feed_target(graph, target);
      if (std::count(feeds_.begin(), feeds_.end(), tensor) > 0)
        throw InvalidArgumentError("Endpoint \"{}\" fed more than once.", tensor.name());
      for (const Fetch& fetch : request_.fetches)
        if (fetch.output == tensor) throw InvalidArgumentError("{} is both fed and fetched.", tensor.name());
      feeds_.push_back(tensor);
    }
  }

  void run(std::span<const Tensor> feeds, std::span<Tensor> results, RunMetadata* metadata) {
    Session::Impl::Run run(*session_, options_);
    check(feeds, results);
    const std::shared_ptr<Plan> plan = plan_for(feeds);
    const auto feed = [&](int i) -> const Tensor& { return feeds[static_cast<std::size_t>(i)]; };
    const auto take = [&](const Frame& frame) {
      detail::check_results(*plan, frame, request_);
      for (std::size_t i = 0; i < results.size(); ++i) {
        const int value = plan->fetches()[i];
        if (value < 0) continue;
        const Tensor& computed = frame.values[static_cast<std::size_t>(value)];
        if (results[i] && results[i].dtype() == computed.dtype() && results[i].shape() == computed.shape())
          results[i].copy_from(computed);
        else results[i] = computed.clone();
      }
    };
    run.step(*plan, feed, take, metadata);
  }

  std::size_t num_results() const { return request_.fetches.size(); }

 private:
  void check(std::span<const Tensor> feeds, std::span<Tensor> results) const {
    if (feeds.size() != feeds_.size())
      throw InvalidArgumentError("{} tensors are fed to a callable that was made for {} feeds", feeds.size(),
                                 feeds_.size());
    if (results.size() != num_results())
      throw InvalidArgumentError("there is room for {} results of a callable that was made for {} fetches",
                                 results.size(), num_results());
    for (std::size_t i = 0; i < feeds.size(); ++i) detail::check_feed_value(feeds_[i], feeds[i]);
  }

  // The one of the last call, if the shapes are still the same.
  std::shared_ptr<Plan> plan_for(std::span<const Tensor> feeds) {
    MutexLock lock(mutex_);
    const bool same =
        plan_ != nullptr &&
        std::equal(feeds.begin(), feeds.end(), shapes_.begin(), shapes_.end(),
                   [](const Tensor& value, const Shape& shape) { return value.shape() == shape; });
    if (same) return plan_;
    detail::StepRequest request = request_;
    for (std::size_t i = 0; i < feeds.size(); ++i) request.feeds.emplace_back(feeds_[i], feeds[i]);
    plan_ = session_->plan_for(request);
    shapes_.clear();
    for (const Tensor& value : feeds) shapes_.push_back(value.shape());
    return plan_;
  }

  const std::shared_ptr<Session::Impl> session_;
  const RunOptions options_;
  detail::StepRequest request_;  // without feeds
  Outputs feeds_;

  Mutex mutex_;
  std::shared_ptr<Plan> plan_ KOLO_GUARDED_BY(mutex_);  // of the last call
  std::vector<Shape> shapes_ KOLO_GUARDED_BY(mutex_);   // of its feeds
};

void Callable::run(std::span<const Tensor> feeds, std::span<Tensor> results, RunMetadata* metadata) const {
  impl_->run(feeds, results, metadata);
}

std::vector<Tensor> Callable::operator()(const std::vector<Tensor>& feeds) const {
  std::vector<Tensor> results(impl_->num_results());
  impl_->run(feeds, results, nullptr);
  return results;
}

Callable Session::make_callable(const CallableSignature& signature, const RunOptions& options) {
  return Callable(std::make_shared<Callable::Impl>(impl_, signature, options));
}

}  // namespace kolo
