#include <kolo/core/cluster/server.h>

#include <fmt/format.h>

#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/cluster/lost_masters.h>
#include <kolo/core/cluster/master/local_master.h>
#include <kolo/core/cluster/master/masters.h>
#include <kolo/core/cluster/master/request_id.h>
#include <kolo/core/cluster/rpc/channel.h>
#include <kolo/core/cluster/rpc/grpc_peers.h>
#include <kolo/core/cluster/rpc/rpc_server.h>
#include <kolo/core/cluster/task_address.h>
#include <kolo/core/cluster/waits.h>
#include <kolo/core/cluster/worker/local_worker.h>

namespace kolo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kScheme[] = "grpc://";
constexpr std::chrono::milliseconds kSignalPeriod{100};
constexpr std::chrono::minutes kWorkersToEnd{5};
constexpr std::chrono::seconds kLongestToHear{5};  // a task that hangs is found lost by pings before

struct Task {
  std::string job;
  int index = 0;
  std::string address;
  std::string name() const { return detail::task_name(job, index); }
};

std::string job_of(const ClusterSpec& cluster, const ServerOptions& options) {
  if (!options.job_name.empty()) return options.job_name;
  const std::vector<std::string> jobs = cluster.jobs();
  if (jobs.size() != 1) throw InvalidArgumentError("Must specify an explicit `job_name`.");
  return jobs.front();
}

int index_of(const std::map<int, std::string>& tasks, const ServerOptions& options) {
  if (options.task_index) return *options.task_index;
  if (tasks.size() != 1) throw InvalidArgumentError("Must specify an explicit `task_index`.");
  return tasks.begin()->first;
}

// All checks, before anything is opened.
Task checked_task(const ClusterSpec& cluster, const ServerOptions& options) {
  if (options.protocol != "grpc")
    throw NotFoundError("No server factory registered for protocol \"{}\"; there is \"grpc\"",
                        options.protocol);
  const std::string job = job_of(cluster, options);
  const auto tasks = cluster.as_map().find(job);
  if (tasks == cluster.as_map().end())
    throw InvalidArgumentError("Job \"{}\" was not defined in cluster", job);
  const int index = index_of(tasks->second, options);
  const auto address = tasks->second.find(index);
  if (address == tasks->second.end())
    throw InvalidArgumentError("Task {} was not defined in job \"{}\"", index, job);
  if (!detail::parse_task_address(address->second))
    throw InvalidArgumentError("Could not parse port for local server from \"{}\".", address->second);
  for (const auto& [other, others] : cluster.as_map())
    for (const auto& [i, text] : others) detail::task_address_of(text);
  if (options.session_gc_seconds < 0)
    throw InvalidArgumentError("session_gc_seconds is {}; it must be at least 0", options.session_gc_seconds);
  return {job, index, address->second};
}

ClusterSpec with_address(const ClusterSpec& cluster, const Task& task, const std::string& address) {
  auto jobs = cluster.as_map();
  jobs[task.job][task.index] = address;
  return ClusterSpec(std::move(jobs));
}

// The tasks whose end is that of a parameter server.
std::set<std::string> workers_of(const ClusterSpec& cluster) {
  std::set<std::string> workers;
  for (const char* job : {"chief", "master", "worker"})
    if (const auto tasks = cluster.as_map().find(job); tasks != cluster.as_map().end())
      for (const auto& [index, address] : tasks->second) workers.insert(detail::task_name(job, index));
  return workers;
}

detail::FindTasksOptions find_options(std::uint64_t fingerprint) {
  detail::FindTasksOptions options;
  options.version = detail::rpc_version();
  options.cluster_fingerprint = fingerprint;
  return options;
}

}  // namespace

class Server::Impl {
 public:
  Impl(const ClusterSpec& cluster, ServerOptions options)
      : options_(std::move(options)),
        task_(checked_task(cluster, options_)),
        credentials_(detail::load_credentials(options_.credentials)),
        rpc_({.task = task_.name(),
              .address = task_.address,
              .bind_address = options_.bind_address,
              .credentials = credentials_}),
        cluster_(with_address(cluster, task_, rpc_.address())),
        target_(kScheme + rpc_.address()),
        peers_(std::make_shared<detail::GrpcPeers>(
            cluster_, detail::Caller{.name = task_.name(),
                                     .cluster_fingerprint = cluster_.fingerprint(),
                                     .credentials = credentials_,
                                     .incarnation = incarnation_})),
        worker_(std::make_shared<detail::LocalWorker>(detail::LocalWorkerOptions{
            .task = task_.name(), .cluster_fingerprint = cluster_.fingerprint(), .config = options_.config})),
        lost_masters_(std::chrono::seconds(options_.session_gc_seconds),
                      {.gone = [worker = worker_](
                                   const detail::TaskProcess& master,
                                   std::chrono::seconds time) { worker->close_sessions_of(master, time); },
                       .restarted =
                           [worker = worker_](const detail::TaskProcess& master) {
                             worker->close_sessions_before(master);
                           }}) {
    worker_->set_peers(*peers_);
    peers_->set_own(worker_, worker_);
    master_ = std::make_shared<detail::LocalMaster>(
        detail::LocalMasterOptions{
            .task = task_.name(),
            .target = target_,
            .incarnation = incarnation_,
            .config = options_.config,
            .find = find_options(cluster_.fingerprint()),
            .session_gc = std::chrono::seconds(options_.session_gc_seconds),
            .run_here =
                [worker = worker_.get()](const detail::RunPartRequest& request,
                                         const detail::Deadline& deadline, StepCancellation& cancellation) {
                  return worker->run_part_here(request, deadline, cancellation);
                },
            .caller = [] { return detail::rpc_caller(); }},
        peers_);
    if (options_.end_with_workers.value_or(env_int64("KOLO_END_WITH_WORKERS", 0, 0, 1) == 1)) {
      running_workers_ = workers_of(cluster_);
      ends_with_workers_ = !running_workers_.empty();
    }
    if (ends_with_workers_) ender_ = std::jthread([this](const std::stop_token& s) { end_with_workers(s); });
    if (options_.start) start();
  }

  ~Impl() {
    stop(std::chrono::milliseconds(0));
    ender_ = std::jthread();  // before what it uses goes
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void start() KOLO_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (state_ == State::stopping || state_ == State::stopped)
        throw FailedPreconditionError("Server has stopped.");
      if (std::exchange(state_, State::started) == State::started) {
        log_info("Server already started (target: {})", target_);
        return;
      }
    }
    detail::add_master(target_, master_);
    rpc_.start({.worker = *worker_,
                .tensors = *worker_,
                .master = *master_,
                .cluster_fingerprint = cluster_.fingerprint(),
                .streams = peers_->streams(),
                .on_watcher = [this](const detail::TaskProcess& watcher,
                                     detail::WatcherEvent event) { hear(watcher, event); },
                .check_session = [this](const std::string& s) { master_->check_session(s); },
                .check_worker_session = [this](const std::string& s) { worker_->check_session(s); }});
    log_info("Started server with target: {}", target_);
  }

  void stop(std::chrono::milliseconds grace) KOLO_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      while (state_ == State::stopping) changed_.wait(mutex_);
      if (state_ == State::stopped) return;
      state_ = State::stopping;
    }
    detail::remove_master(target_);
    peers_->say_stopping();
    {
      // At once: each lets its own calls end within the grace, and some of either wait for the other.
      const std::jthread calls([&] { rpc_.stop(grace); });
      master_->shutdown(grace);
    }
    worker_->shutdown();
    // A parameter server that does not hear of its last worker's end would wait for it for minutes.
    peers_->wait_until_stopping_is_heard(Clock::now() + kLongestToHear);
    MutexLock lock(mutex_);
    state_ = State::stopped;
    changed_.notify_all();
  }

  void join() KOLO_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (state_ == State::made) return;
    }
    install_stop_signals();
    std::optional<Clock::time_point> asked;
    while (true) {
      bool serves_workers = false;
      {
        const auto next = Clock::now() + kSignalPeriod;
        MutexLock lock(mutex_);
        while (state_ != State::stopped && Clock::now() < next) changed_.wait_until(mutex_, next);
        if (state_ == State::stopped) return;
        serves_workers = ends_with_workers_ && !running_workers_.empty();
      }
      if (!stop_signal_received()) continue;
      if (!asked) asked = Clock::now();
      // The workers have been asked, too. They finish their step and save, for which they need this task.
      if (!serves_workers || Clock::now() > *asked + kWorkersToEnd) stop(std::chrono::seconds(10));
    }
  }

  const std::string& target() const { return target_; }
  const ClusterSpec& cluster() const { return cluster_; }

 private:
  enum class State { made, started, stopping, stopped };

  // On a thread of the transport.
  void hear(const detail::TaskProcess& watcher, detail::WatcherEvent event) KOLO_EXCLUDES(mutex_) {
    lost_masters_.hear(watcher, event);
    if (!ends_with_workers_) return;
    MutexLock lock(mutex_);
    if (event == detail::WatcherEvent::stopping) running_workers_.erase(watcher.task);
    changed_.notify_all();
  }

  void end_with_workers(const std::stop_token& stop_requested) KOLO_EXCLUDES(mutex_) {
    const detail::WakeOnStop wake(stop_requested, mutex_, changed_);
    {
      MutexLock lock(mutex_);
      while (!running_workers_.empty() && state_ != State::stopped && !stop_requested.stop_requested())
        changed_.wait(mutex_);
      if (!running_workers_.empty() || state_ == State::stopped) return;
    }
    log_info("{} stops with the last of its cluster's workers", task_.name());
    stop(std::chrono::seconds(10));
  }

  const ServerOptions options_;
  const Task task_;
  const detail::LoadedCredentials credentials_;
  detail::RpcServer rpc_;
  const ClusterSpec cluster_;
  const std::string target_;
  const std::uint64_t incarnation_ = detail::random_request_id();
  const std::shared_ptr<detail::GrpcPeers> peers_;
  const std::shared_ptr<detail::LocalWorker> worker_;
  detail::LostMasters lost_masters_;
  std::shared_ptr<detail::LocalMaster> master_;

  Mutex mutex_;
  CondVar changed_;
  State state_ KOLO_GUARDED_BY(mutex_) = State::made;
  bool ends_with_workers_ = false;
  std::set<std::string> running_workers_ KOLO_GUARDED_BY(mutex_);  // that have not said that they stop
  std::jthread ender_;
};

Server::Server(const ClusterSpec& cluster, ServerOptions options)
    : impl_(std::make_unique<Impl>(cluster, std::move(options))) {}
Server::~Server() = default;
Server::Server(Server&&) noexcept = default;
Server& Server::operator=(Server&&) noexcept = default;

Server Server::create_local_server(SessionConfig config, bool start) {
  return Server(ClusterSpec({{"local", {"127.0.0.1:0"}}}),
                {.job_name = "local", .task_index = 0, .config = std::move(config), .start = start});
}

void Server::start() { impl_->start(); }
void Server::stop(std::chrono::milliseconds grace) { impl_->stop(grace); }
void Server::join() { impl_->join(); }
const std::string& Server::target() const { return impl_->target(); }
const ClusterSpec& Server::cluster() const { return impl_->cluster(); }

}  // namespace kolo
