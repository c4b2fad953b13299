#include <kolo/core/cluster/client/cluster_session.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/cluster/master/request_id.h>
#include <kolo/core/cluster/waits.h>
#include <kolo/core/cluster/worker/client_iterator.h>

#include <kolo/core/cluster/rpc/shard_messages_internal.h>

namespace kolo::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kMasterPatience{10};  // with a master whose client goes

const RegisterRemoteSessions grpc_sessions(
    "grpc://",
    {.make =
         [](Graph& graph, const std::string& target, const SessionConfig& config) {
           return std::unique_ptr<RemoteSession>(std::make_unique<ClusterSession>(graph, target, config));
         },
     .reset =
         [](const std::string& target, const std::vector<std::string>& containers,
            const SessionConfig& config) {
           Deadline deadline;
           if (config.operation_timeout_in_ms > 0)
             deadline = Clock::now() + std::chrono::milliseconds(config.operation_timeout_in_ms);
           def::ContainersRequestDef request;
           put_strings(*request.mutable_containers(), containers);
           *request.mutable_config() = to_def(config);
           connect_master(target, config).master->call<Reset>(request, deadline);
         }});

// An iterator's elements are an object of this process: another one gets a node that only says what comes. A
// run that needs it is refused there; one that feeds its values does not.
void leave_sources_here(GraphDef& nodes, const Graph& graph) {
  for (NodeDef& node : nodes.nodes) {
    if (node.op != "IteratorNext") continue;
    const Node& iterator = *graph.find_node(node.name);
    std::vector<Shape> shapes;
    for (int i = 0; i < iterator.num_outputs(); ++i) shapes.push_back(iterator.output_shape(i));
    node.op = kClientIteratorOp;
    node.attrs = {{"shapes", encode_shapes(shapes)}};
  }
}

std::vector<bool> which_are_values(const std::vector<Fetch>& fetches) {
  std::vector<bool> values;
  for (const Fetch& fetch : fetches) values.push_back(static_cast<bool>(fetch.output));
  return values;
}

StepNames step_names_of(const StepRequest& request) {
  StepNames names;
  for (const Fetch& fetch : request.fetches) {
    if (fetch.output) names.fetches.push_back(fetch.output.name());
    else names.targets.push_back(fetch.operation.name());
  }
  for (const Fetch& target : request.targets) names.targets.push_back(target.operation.name());
  for (const auto& [target, value] : request.feeds) names.feeds.push_back(target.name());
  return names;
}

// Requests a stop when a signal asks for one while this lives: what waits for tasks may wait for ever. A
// session that is opened after the signal, to save perhaps, has a few seconds, as its process has no more.
class StopSignalWatch {
 public:
  StopSignalWatch() : poller_([this] { poll(); }) {}
  ~StopSignalWatch() {
    MutexLock lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  StopSignalWatch(const StopSignalWatch&) = delete;
  StopSignalWatch& operator=(const StopSignalWatch&) = delete;
  std::stop_token stop() const { return stop_.get_token(); }

 private:
  static constexpr std::chrono::milliseconds kPeriod{100};  // a handler of signals can wake nobody
  static constexpr std::chrono::seconds kAfterSignal{4};

  void poll() KOLO_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto end = Clock::now() + kAfterSignal;
    if (stop_signal_received())
      while (!over_ && Clock::now() < end) changed_.wait_until(mutex_, end);
    while (!over_ && !stop_signal_received()) changed_.wait_until(mutex_, Clock::now() + kPeriod);
    if (!over_) stop_.request_stop();
  }

  std::stop_source stop_;
  Mutex mutex_;
  CondVar changed_;
  bool over_ KOLO_GUARDED_BY(mutex_) = false;
  std::jthread poller_;  // first to end
};

def::CreateSessionResponseDef create_session(Master& master, const std::string& target, GraphDef nodes,
                                             const SessionConfig& config, const Deadline& deadline) {
  const StopSignalWatch signal;
  def::CreateSessionRequestDef request;
  *request.mutable_config() = to_def(config);
  try {
    return master.call<CreateSession>(request, std::move(nodes), deadline.with(signal.stop()));
  } catch (const CancelledError&) {
    if (!signal.stop().stop_requested()) throw;
    throw CancelledError("a signal asked to stop while the session on {} was waiting for its tasks", target);
  }
}

}  // namespace

// A call under way: close() ends it and waits for it.
class ClusterSession::Use {
 public:
  explicit Use(ClusterSession& session) : session_(session) {
    MutexLock lock(session_.mutex_);
    if (session_.closed_)
      throw FailedPreconditionError("Session is closed. Attempted to use a closed Session.");
    session_.uses_.insert(this);
  }
  ~Use() {
    MutexLock lock(session_.mutex_);
    session_.uses_.erase(this);
    session_.changed_.notify_all();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  /// Of a call that may take so long (deadline_of): close() ends it, too.
  Deadline deadline(std::int64_t milliseconds = 0) const {
    return session_.deadline_of(milliseconds).with(stop.get_token());
  }

  std::stop_source stop;  // of close()

 private:
  ClusterSession& session_;
};

// The client's sign of life.
struct ClusterSession::Watch {
  Mutex mutex;
  bool standing KOLO_GUARDED_BY(mutex) = false;
  std::shared_ptr<Call> call KOLO_GUARDED_BY(mutex);
};

// Freed at the master with its last owner, unless the session was closed before.
class ClusterSession::BoundStep final : public RemoteSession::Bound {
 public:
  BoundStep(std::shared_ptr<Master> master, std::string session, std::int64_t callable,
            std::vector<bool> is_value)
      : callable(callable),
        is_value(std::move(is_value)),
        master_(std::move(master)),
        session_(std::move(session)) {}
  ~BoundStep() override {
    try {
      def::CallableDef request;
      request.set_session(session_);
      request.set_callable(callable);
      master_->call<ReleaseCallable>(request, Clock::now() + std::chrono::seconds(2));
    } catch (const std::exception& error) {
      log_debug("a callable of session {} stays: {}", session_, error.what());
    }
  }

  const std::int64_t callable;
  const std::vector<bool> is_value;  // of the fetches

 private:
  const std::shared_ptr<Master> master_;
  const std::string session_;
};

ClusterSession::ClusterSession(Graph& graph, std::string target, SessionConfig config)
    : graph_(graph),
      target_(std::move(target)),
      config_(std::move(config)),
      operation_timeout_in_ms_(config_.operation_timeout_in_ms),
      connected_(connect_master(target_, config_)),
      watch_(std::make_shared<Watch>()) {
  GraphDef nodes = to_graph_def(graph_);
  if (!connected_.in_process) leave_sources_here(nodes, graph_);
  const int sent = static_cast<int>(nodes.nodes.size());
  const auto created = create_session(*connected_.master, target_, std::move(nodes), config_,
                                      deadline_of(config_.operation_timeout_in_ms));
  handle_ = checked_handle(created.handle());
  operation_timeout_in_ms_ = created.operation_timeout_in_ms();
  {
    MutexLock lock(mutex_);
    version_ = created.graph_version();
    sent_ = sent;
  }
  try {
    keep_watch();
    const auto answer =
        connected_.master->call<ListDevices>(of_session(handle_), Clock::now() + kMasterPatience);
    for (const auto& device : answer.devices()) devices_.push_back(from_def(device));
  } catch (...) {
    close();
    throw;
  }
}

ClusterSession::~ClusterSession() { close(); }

Deadline ClusterSession::deadline_of(std::int64_t milliseconds) const {
  if (milliseconds <= 0) milliseconds = operation_timeout_in_ms_;
  if (milliseconds <= 0) return {};
  return Clock::now() + std::chrono::milliseconds(milliseconds);
}

void ClusterSession::keep_watch() {
  {
    MutexLock lock(watch_->mutex);
    if (std::exchange(watch_->standing, true)) return;
  }
  std::shared_ptr<Call> call;
  try {
    call = connected_.master->watch(handle_, [watch = watch_](const std::exception_ptr&) {
      MutexLock lock(watch->mutex);
      watch->standing = false;
    });
  } catch (...) {
    MutexLock lock(watch_->mutex);
    watch_->standing = false;
    throw;
  }
  MutexLock lock(watch_->mutex);
  watch_->call = std::move(call);
}

void ClusterSession::send_growth(const Deadline& deadline) {
  int sent = 0;
  std::int64_t version = 0;
  {
    const WakeOnStop wake(deadline.stop(), mutex_, changed_);
    MutexLock lock(mutex_);
    while (sending_) wait_for_change(changed_, mutex_, deadline);
    if (graph_.num_nodes() == sent_) return;
    sending_ = true;
    sent = sent_, version = version_;
  }
  std::exception_ptr failure;
  try {
    GraphDef nodes = to_graph_def(graph_);
    nodes.collections.clear();
    nodes.nodes.erase(nodes.nodes.begin(), nodes.nodes.begin() + sent);
    if (!connected_.in_process) leave_sources_here(nodes, graph_);
    // To its end, whatever stops the run: a growth that the master has and the client does not know of would
    // break the session.
    const int added = static_cast<int>(nodes.nodes.size());
    def::ExtendSessionRequestDef request;
    request.set_session(handle_);
    request.set_version(version);
    version = connected_.master->call<ExtendSession>(request, std::move(nodes), deadline.with({})).version();
    sent += added;
  } catch (...) {
    failure = std::current_exception();
  }
  {
    MutexLock lock(mutex_);
    sending_ = false;
    sent_ = sent, version_ = version;
    changed_.notify_all();
  }
  if (failure) std::rethrow_exception(failure);
}

void ClusterSession::print(const std::vector<std::string>& placement_lines) const {
  if (connected_.in_process) return;  // where the master has said so already
  for (const std::string& line : placement_lines) {
    std::printf("%s\n", line.c_str());
    log_info("{}", line);
  }
  if (!placement_lines.empty()) std::fflush(stdout);
}

std::vector<Tensor> ClusterSession::placed(std::vector<Tensor> values, const std::vector<bool>& is_value) {
  const auto expected = static_cast<std::size_t>(std::count(is_value.begin(), is_value.end(), true));
  if (values.size() != expected)
    throw InternalError("the master sent {} values for {} fetches", values.size(), expected);
  std::vector<Tensor> results;
  auto next = values.begin();
  for (const bool value : is_value) results.push_back(value ? std::move(*next++) : Tensor());
  return results;
}

std::vector<Tensor> ClusterSession::run_step(RunStepRequest request, const std::vector<bool>& is_value,
                                             const RunOptions& options, RunMetadata* metadata) {
  Use use(*this);
  const Deadline deadline = use.deadline(options.timeout_in_ms);
  request.session = handle_;
  request.metadata = metadata != nullptr;
  if (metadata != nullptr) request.trace_level = options.trace_level;
  request.request_id = random_request_id();
  const std::stop_callback on_stop(options.stop_token, [&] { use.stop.request_stop(); });
  try {
    send_growth(deadline);
    keep_watch();
    StepResult result = connected_.master->run_step(request, deadline);
    print(result.placement_lines);
    if (metadata != nullptr) *metadata = std::move(result.metadata);
    return placed(std::move(result.fetches), is_value);
  } catch (const Error&) {
    // Also where the transport had not yet sent what was cancelled, and says so in its own words.
    if (options.stop_token.stop_requested()) throw CancelledError("The run was stopped by its stop_token.");
    if (use.stop.stop_requested())
      throw CancelledError("Step was cancelled by an explicit call to `Session::close()`.");
    throw;
  }
}

std::vector<Tensor> ClusterSession::run(const StepRequest& request, const RunOptions& options,
                                        RunMetadata* metadata) {
  RunStepRequest step;
  step.names = step_names_of(request);
  for (const auto& [target, value] : request.feeds) step.feeds.push_back(value);
  return run_step(std::move(step), which_are_values(request.fetches), options, metadata);
}

std::shared_ptr<RemoteSession::Bound> ClusterSession::bind(const StepRequest& request,
                                                           const std::vector<Output>& feeds) {
  const Use use(*this);
  const Deadline deadline = use.deadline();
  send_growth(deadline);
  StepNames names = step_names_of(request);
  names.feeds.clear();
  for (const Output& feed : feeds) names.feeds.push_back(feed.name());
  def::MakeCallableRequestDef message;
  message.set_session(handle_);
  *message.mutable_names() = to_def(names);
  const std::int64_t callable = connected_.master->call<MakeCallable>(message, deadline).callable();
  return std::make_shared<BoundStep>(connected_.master, handle_, callable, which_are_values(request.fetches));
}

std::vector<Tensor> ClusterSession::run_bound(const Bound& bound, std::span<const Tensor> feeds,
                                              const RunOptions& options, RunMetadata* metadata) {
  const auto& step = dynamic_cast<const BoundStep&>(bound);
  RunStepRequest request;
  request.callable = step.callable;
  request.feeds.assign(feeds.begin(), feeds.end());
  return run_step(std::move(request), step.is_value, options, metadata);
}

void ClusterSession::close() {
  std::vector<std::stop_source> stops;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    for (Use* use : uses_) stops.push_back(use->stop);
  }
  for (std::stop_source& stop : stops) stop.request_stop();
  {
    MutexLock lock(mutex_);
    while (!uses_.empty()) changed_.wait(mutex_);
    if (std::exchange(gone_, true)) return;
  }
  // What cannot be closed is closed by its master, which misses the watch.
  try {
    connected_.master->call<CloseSession>(of_session(handle_), Clock::now() + kMasterPatience);
  } catch (const std::exception& error) {
    log_warning("Closing the session on {}: {}", target_, error.what());
  }
  std::shared_ptr<Call> call;
  {
    MutexLock lock(watch_->mutex);
    call = std::move(watch_->call);
  }
  if (call) call->cancel();
}

template <typename Row>
typename Row::Answer ClusterSession::ask(const typename Row::Request& request) {
  const Use use(*this);
  const Deadline deadline = use.deadline();
  send_growth(deadline);
  return connected_.master->call<Row>(request, deadline);
}

void ClusterSession::get_variables(const std::vector<std::string>& names,
                                   const std::function<void(std::size_t, Tensor)>& on_value) {
  const Use use(*this);
  const Deadline deadline = use.deadline();
  send_growth(deadline);
  connected_.master->get_variables(handle_, names, on_value, deadline);
}

void ClusterSession::set_variables(const std::vector<std::string>& names,
                                   const std::function<Tensor(std::size_t)>& value) {
  const Use use(*this);
  const Deadline deadline = use.deadline();
  send_growth(deadline);
  connected_.master->set_variables(handle_, names, value, deadline);
}

std::vector<bool> ClusterSession::are_initialized(const std::vector<std::string>& names) {
  return from_def(ask<AreInitialized>(to_def(handle_, names)), names.size());
}

std::vector<WrittenShard> ClusterSession::write_shards(const ShardPlace& place,
                                                       const std::vector<SavedVariable>& variables) {
  const auto answer = ask<WriteShards>(to_def(handle_, place, {}, variables));
  std::vector<WrittenShard> shards;
  for (const auto& shard : answer.shards()) shards.push_back(from_def(shard, variables.size(), true));
  return shards;
}

void ClusterSession::read_shards(const std::vector<SavedVariable>& variables) {
  ask<ReadShards>(to_def(handle_, {}, variables));
}

std::map<std::string, std::uint64_t> ClusterSession::random_positions() {
  const Use use(*this);
  return positions_from(connected_.master->call<RandomPositions>(of_session(handle_), use.deadline()));
}

void ClusterSession::set_random_positions(const std::map<std::string, std::uint64_t>& positions) {
  ask<SetRandomPositions>(to_def(handle_, positions));
}

}  // namespace kolo::detail
