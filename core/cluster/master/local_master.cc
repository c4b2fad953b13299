#include <kolo/core/cluster/master/local_master.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/cluster/master/device_filters.h>
#include <kolo/core/cluster/master/merged_config.h>
#include <kolo/core/cluster/master/request_id.h>
#include <kolo/core/cluster/waits.h>

#include <kolo/core/cluster/rpc/shard_messages_internal.h>

namespace kolo::detail {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr double kYear = 366.0 * 86400;
constexpr std::chrono::seconds kTaskPatience{5};  // with a task that may be away

std::chrono::milliseconds stall_warning() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      Seconds(env_double("KOLO_STALL_WARNING_S", 60, 0, kYear)));
}

}  // namespace

// The rows of MasterCalls. Messages come from the wire: what they hold is checked here, but for the handle of
// a session, which the service has checked.
struct LocalMaster::Answers {
  LocalMaster& master;

  def::CreateSessionResponseDef operator()(CreateSession, const auto& request, const GraphDef& graph,
                                           const Deadline& deadline) const {
    return master.create_session(graph, from_def(request.config()), deadline);
  }
  def::ExtendSessionResponseDef operator()(ExtendSession, const auto& request, const GraphDef& nodes,
                                           const Deadline&) const {
    def::ExtendSessionResponseDef answer;
    answer.set_version(master.find(request.session())->extend(request.version(), nodes));
    return answer;
  }
  def::CallableDef operator()(MakeCallable, const auto& request, const Deadline&) const {
    def::CallableDef answer;
    answer.set_callable(master.find(request.session())->make_callable(from_def(request.names())));
    return answer;
  }
  def::Empty operator()(ReleaseCallable, const auto& request, const Deadline&) const {
    master.find(request.session())->release_callable(request.callable());
    return {};
  }
  def::Empty operator()(CloseSession, const auto& request, const Deadline& deadline) const {
    master.close_session(request.session(), deadline);
    return {};
  }
  def::DevicesDef operator()(ListDevices, const auto& request, const Deadline&) const {
    def::DevicesDef answer;
    for (const auto& device : master.find(request.session())->devices())
      *answer.add_devices() = to_def(device);
    return answer;
  }
  def::Empty operator()(Reset, const auto& request, const Deadline& deadline) const {
    master.reset(checked_names(request.containers(), "container's name"), from_def(request.config()),
                 deadline);
    return {};
  }
  def::InitializedResponseDef operator()(AreInitialized, const auto& request,
                                         const Deadline& deadline) const {
    return to_def(master.find(request.session())->are_initialized(names_of(request), deadline));
  }
  def::WriteShardsResponseDef operator()(WriteShards, const auto& request, const Deadline& deadline) const {
    def::WriteShardsResponseDef answer;
    for (const WrittenShard& shard :
         master.find(request.session())
             ->write_shards(place_from(request), variables_from(request.variables()), deadline))
      *answer.add_shards() = to_def(shard);
    return answer;
  }
  def::Empty operator()(ReadShards, const auto& request, const Deadline& deadline) const {
    master.find(request.session())->read_shards(variables_from(request.variables()), deadline);
    return {};
  }
  def::RandomPositionsDef operator()(RandomPositions, const auto& request, const Deadline& deadline) const {
    return to_def("", master.find(request.session())->random_positions(deadline));
  }
  def::Empty operator()(SetRandomPositions, const auto& request, const Deadline& deadline) const {
    master.find(request.session())->set_random_positions(positions_from(request), deadline);
    return {};
  }
};

void LocalMaster::on_call(std::string_view method, const Message& request, GraphDef* graph, Message& answer,
                          const Deadline& deadline) {
  answer_row(Answers{*this}, method, request, graph, answer, deadline);
}

LocalMaster::LocalMaster(LocalMasterOptions options, std::shared_ptr<Peers> peers)
    : options_(std::move(options)),
      peers_(std::move(peers)),
      watches_(peers_, [this](const std::string& task, const std::exception_ptr& why) { lose(task, why); }),
      environment_{.task = options_.task,
                   .target = options_.target,
                   .incarnation = options_.incarnation,
                   .peers = peers_,
                   .run_here = options_.run_here,
                   .watches = &watches_,
                   .keeper = &keeper_,
                   .stall_warning = stall_warning()} {
  if (options_.session_gc.count() > 0)
    collector_ = std::jthread([this](const std::stop_token& stop) { collect(stop); });
}

LocalMaster::~LocalMaster() { shutdown(); }

void LocalMaster::shutdown(std::chrono::milliseconds grace) {
  Sessions sessions;
  {
    MutexLock lock(mutex_);
    over_ = true;
    sessions = sessions_;
    changed_.notify_all();
  }
  collector_.request_stop();
  stop_.request_stop();
  const auto until = Clock::now() + grace;
  for (const auto& [handle, session] : sessions) session->wait_for_calls(until);
  close_all({});
}

std::shared_ptr<MasterSession> LocalMaster::find(const std::string& session) {
  MutexLock lock(mutex_);
  if (over_) throw UnavailableError("{} is shutting down", options_.task);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) throw AbortedError("Session {} is not found.", session);
  return found->second;
}

std::vector<std::string> LocalMaster::tasks_for(const SessionConfig& config) const {
  const DeviceFilters filters(config.device_filters);
  std::vector<std::string> tasks;
  for (const std::string& task : peers_->tasks())
    if (task == options_.task || filters.pass_task(task)) tasks.push_back(task);
  return tasks;
}

def::CreateSessionResponseDef LocalMaster::create_session(const GraphDef& graph, const SessionConfig& config,
                                                          const Deadline& deadline) {
  const std::string caller = options_.caller ? options_.caller() : "";
  MasterSessionOptions session_options{.handle = random_session_handle(),
                                       .client = caller.empty() ? "of this process" : caller,
                                       .in_process = caller.empty(),
                                       .config = merged_config(options_.config, config)};
  const std::vector<std::string> tasks = tasks_for(session_options.config);
  {
    MutexLock lock(mutex_);
    if (over_) throw UnavailableError("{} is shutting down", options_.task);
    if (sessions_.size() + opening_ >= options_.sessions)
      throw ResourceExhaustedError("{} keeps {} sessions, the most that it may; close one of them",
                                   options_.task, sessions_.size() + opening_);
    ++opening_;
  }
  // Its place among the sessions, until it is there itself.
  const std::shared_ptr<void> place(nullptr, [this](void*) {
    MutexLock lock(mutex_);
    --opening_;
    changed_.notify_all();
  });
  const EitherStop either(deadline.stop(), stop_.get_token());
  Deadline until = deadline.with(either.token());
  // Of a session that says nothing. One that has a time of its own may have to wait for tasks that start,
  // which is no reason to give its runs as long.
  if (const std::int64_t servers = options_.config.operation_timeout_in_ms;
      servers > 0 && config.operation_timeout_in_ms <= 0)
    until = until.at_most(std::chrono::milliseconds(servers));
  const auto statuses = find_tasks(*peers_, tasks, options_.find, until);
  const auto session = std::make_shared<MasterSession>(environment_, std::move(session_options), statuses);
  const std::int64_t version = session->extend(0, graph);
  session->open(until);
  def::CreateSessionResponseDef created;
  created.set_handle(session->options().handle);
  created.set_graph_version(version);
  created.set_operation_timeout_in_ms(session->options().config.operation_timeout_in_ms);
  bool late = false;
  {
    MutexLock lock(mutex_);
    late = over_;
    if (!late) sessions_[created.handle()] = session;
  }
  if (late) {
    session->close({});
    throw UnavailableError("{} is shutting down", options_.task);
  }
  return created;
}

StepResult LocalMaster::run_step(const RunStepRequest& request, const Deadline& deadline) {
  return find(request.session)->run(request, deadline);
}

void LocalMaster::close_session(const std::string& session, const Deadline& deadline) {
  std::shared_ptr<MasterSession> closed;
  {
    MutexLock lock(mutex_);
    const auto found = sessions_.find(session);
    if (found == sessions_.end())
      throw AbortedError("Session {} is not found. Possibly, this master has restarted.", session);
    closed = found->second;
  }
  // Known until it is closed: a run that comes meanwhile is told so.
  closed->close(deadline);
  MutexLock lock(mutex_);
  sessions_.erase(session);
}

void LocalMaster::close_all(const Deadline& deadline) {
  Sessions closed;
  {
    MutexLock lock(mutex_);
    while (over_ && opening_ > 0) changed_.wait(mutex_);
    closed = sessions_;
  }
  for (const auto& [handle, session] : closed) session->close(deadline);
  MutexLock lock(mutex_);
  for (const auto& [handle, session] : closed) sessions_.erase(handle);
}

void LocalMaster::reset(const std::vector<std::string>& containers, const SessionConfig& config,
                        const Deadline& deadline) {
  const std::vector<std::string> tasks = tasks_for(merged_config(options_.config, config));
  {
    MutexLock lock(mutex_);
    if (over_) throw UnavailableError("{} is shutting down", options_.task);
  }
  close_all(deadline);
  for (const std::string& task : tasks) {
    try {
      def::ContainersRequestDef request;
      put_strings(*request.mutable_containers(), containers);
      peers_->worker(task)->call<CleanupAll>(request, deadline.at_most(kTaskPatience));
    } catch (const UnavailableError& error) {
      log_warning("Reset skips {}: {}", task, error.what());
    } catch (const DeadlineExceededError& error) {
      log_warning("Reset skips {}: {}", task, error.what());
    }
  }
}

void LocalMaster::get_variables(const std::string& session, const std::vector<std::string>& names,
                                const std::function<void(std::size_t, Tensor)>& on_value,
                                const Deadline& deadline) {
  find(session)->get_variables(names, on_value, deadline);
}

void LocalMaster::set_variables(const std::string& session, const std::vector<std::string>& names,
                                const std::function<Tensor(std::size_t)>& value, const Deadline& deadline) {
  find(session)->set_variables(names, value, deadline);
}

std::shared_ptr<Call> LocalMaster::watch(const std::string& session,
                                         std::function<void(std::exception_ptr)> ended) {
  return find(session)->watch(std::move(ended));
}

void LocalMaster::lose(const std::string& task, const std::exception_ptr& why) {
  Sessions sessions;
  {
    MutexLock lock(mutex_);
    sessions = sessions_;
  }
  for (const auto& [handle, session] : sessions) session->lose(task, why);
}

void LocalMaster::collect(const std::stop_token& stop) {
  const auto period =
      std::clamp(options_.session_gc / 4, std::chrono::milliseconds(10), std::chrono::milliseconds(1000));
  while (!stop.stop_requested()) {
    std::vector<std::pair<std::string, std::shared_ptr<MasterSession>>> left;
    {
      const auto next = Clock::now() + period;
      MutexLock lock(mutex_);
      while (!over_ && Clock::now() < next) changed_.wait_until(mutex_, next);
      if (over_) return;
      for (const auto& [handle, session] : sessions_)
        if (session->idle() >= options_.session_gc) left.emplace_back(handle, session);
    }
    for (const auto& [handle, session] : left) {
      const auto idle = std::chrono::duration_cast<std::chrono::seconds>(session->idle());
      log_warning("Closing session {}: its client {} has been gone for {} s", handle,
                  session->options().client, idle.count());
      session->close(Clock::now() + kTaskPatience);
      MutexLock lock(mutex_);
      sessions_.erase(handle);
    }
  }
}

}  // namespace kolo::detail
