#include <kolo/core/cluster/rpc/grpc_peers.h>

#include <kolo/core/base/error.h>

#include <kolo/core/cluster/rpc/step_streams_internal.h>

namespace kolo::detail {

namespace {
constexpr std::size_t kMostThreads = 64;
}

GrpcPeers::GrpcPeers(const ClusterSpec& cluster, Caller caller)
    : caller_(std::move(caller)),
      threads_("kolo rpc", kMostThreads),
      streams_(std::make_shared<StepStreams>(threads_)) {
  for (const auto& [job, tasks] : cluster.as_map())
    for (const auto& [index, address] : tasks) addresses_[task_name(job, index)] = address;
}

void GrpcPeers::set_own(std::weak_ptr<Worker> own, std::weak_ptr<TensorSource> values) {
  streams_->set_own(std::move(values));
  MutexLock lock(mutex_);
  own_ = std::move(own);
}

std::vector<std::string> GrpcPeers::tasks() const {
  std::vector<std::string> names;
  for (const auto& [task, address] : addresses_) names.push_back(task);
  return names;
}

std::string GrpcPeers::address(const std::string& task) const {
  const auto found = addresses_.find(task);
  if (found == addresses_.end()) throw InvalidArgumentError("{} is no task of this cluster", task);
  return found->second;
}

std::shared_ptr<Worker> GrpcPeers::worker(const std::string& task) {
  const std::string where = address(task);
  MutexLock lock(mutex_);
  if (task == caller_.name) {
    if (auto own = own_.lock()) return own;
    throw UnavailableError("{} is shutting down", task);
  }
  auto& worker = workers_[task];
  if (worker == nullptr)
    worker = std::make_shared<RemoteWorker>(make_channel(where, caller_), task, streams_);
  return worker;
}

void GrpcPeers::say_stopping() {
  MutexLock lock(mutex_);
  for (const auto& [task, worker] : workers_)
    if (worker != nullptr) worker->say_stopping();
}

void GrpcPeers::wait_until_stopping_is_heard(std::chrono::steady_clock::time_point deadline) {
  decltype(workers_) workers;
  {
    MutexLock lock(mutex_);
    workers = workers_;
  }
  for (const auto& [task, worker] : workers)
    if (worker != nullptr) worker->wait_until_stopping_is_heard(deadline);
}

}  // namespace kolo::detail
