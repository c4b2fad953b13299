#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/worker/local_worker_internal.h>
#include <kolo/core/cluster/worker/transfer_key.h>
#include <kolo/core/device/device_set.h>

namespace kolo::detail {
namespace {

DeviceSet devices_of(const LocalWorkerOptions& options) {
  DeviceOptions wanted;
  wanted.device_count = options.config.device_count;
  wanted.virtual_gpus = options.config.virtual_gpus;
  wanted.gpu_options = options.config.gpu_options;
  wanted.task = options.task;
  return make_devices(wanted);
}

std::uint64_t random_incarnation() {
  std::random_device source;
  const auto high = static_cast<std::uint64_t>(source());
  const std::uint64_t number = (high << 32) | source();
  return number != 0 ? number : 1;  // 0 is that of a local session
}

std::vector<DeviceAttributes> attributes_of(const DeviceSet& devices) {
  std::vector<DeviceAttributes> all;
  for (const auto& device : devices.devices()) all.push_back(device->attributes(random_incarnation()));
  return all;
}

}  // namespace

// Says once that it stands, and once that it has ended.
class LocalWorker::Impl::Watch final : public Call {
 public:
  explicit Watch(std::function<void(const TaskStatus*, std::exception_ptr)> on_change)
      : on_change_(std::move(on_change)) {}

  void begin(const TaskStatus& status) { on_change_(&status, nullptr); }
  void cancel() override { end(std::make_exception_ptr(CancelledError("the watch was cancelled"))); }
  void end(std::exception_ptr reason) KOLO_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (std::exchange(ended_, true)) return;
    }
    on_change_(nullptr, std::move(reason));
  }
  bool has_ended() KOLO_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return ended_;
  }

 private:
  const std::function<void(const TaskStatus*, std::exception_ptr)> on_change_;
  Mutex mutex_;
  bool ended_ KOLO_GUARDED_BY(mutex_) = false;
};

LocalWorker::Impl::Impl(const LocalWorkerOptions& options)
    : options_(options),
      devices_(devices_of(options)),
      intra_op_threads_(intra_op_threads_of_process(options.config.intra_op_parallelism_threads)),
      pools_(options.config, intra_op_threads_),
      attributes_(attributes_of(devices_)),
      variables_(options.task) {}

TaskState LocalWorker::Impl::state() {
  return {.task = options_.task,
          .devices = devices_,
          .variables = variables_,
          .containers = containers_,
          .intra_op_threads = intra_op_threads_};
}

std::exception_ptr LocalWorker::Impl::is_down() const {
  return std::make_exception_ptr(UnavailableError("{} is shutting down", options_.task));
}

// Tasks that send gradients, as far as it is known what the cluster has.
std::vector<std::string> LocalWorker::Impl::workers() const {
  std::vector<std::string> workers;
  if (peers_ == nullptr) return workers;
  for (const std::string& task : peers_->tasks()) {
    const auto spec = parse_device_spec(task);
    const std::string job = spec && spec->job ? *spec->job : "";
    if (job == "chief" || job == "master" || job == "worker") workers.push_back(task);
  }
  return workers;
}

TaskStatus LocalWorker::Impl::status() {
  TaskStatus status;
  status.task = options_.task;
  status.version = KOLO_VERSION;
  status.cluster_fingerprint = options_.cluster_fingerprint;
  status.devices = attributes_;
  status.variable_bytes = variables_.bytes();
  std::vector<std::shared_ptr<WorkerSession>> sessions;
  {
    MutexLock lock(mutex_);
    if (down_) std::rethrow_exception(is_down());
    for (const auto& [handle, session] : sessions_) {
      status.sessions.push_back(handle);
      sessions.push_back(session);
    }
  }
  const std::vector<std::string> senders = workers();
  for (const auto& session : sessions) {
    status.variable_bytes += session->own_variable_bytes();
    session->append_waits(senders, status.waits);
  }
  return status;
}

void LocalWorker::Impl::add_session(const WorkerSessionRequest& request) {
  auto session = std::make_shared<WorkerSession>(request, state());
  MutexLock lock(mutex_);
  if (down_) std::rethrow_exception(is_down());
  if (sessions_.size() >= options_.sessions && sessions_.count(request.session) == 0)
    throw ResourceExhaustedError("{} keeps {} sessions, the most that it may; close one of them",
                                 options_.task, sessions_.size());
  if (!sessions_.emplace(request.session, std::move(session)).second)
    throw AlreadyExistsError("{} has a session {} already", options_.task, request.session);
}

void LocalWorker::Impl::remove_session(const std::string& handle) {
  std::shared_ptr<WorkerSession> session;
  {
    MutexLock lock(mutex_);
    const auto found = sessions_.find(handle);
    if (found == sessions_.end()) return;
    session = std::move(found->second);
    sessions_.erase(found);
  }
  session->close(std::make_exception_ptr(
      ConsequenceError(Code::cancelled, fmt::format("session {} is closed", handle))));
}

std::vector<std::string> LocalWorker::Impl::sessions_of(const TaskProcess& master, bool others) {
  MutexLock lock(mutex_);
  std::vector<std::string> handles;
  for (const auto& [handle, session] : sessions_)
    if (session->master() == master.task && (session->master_incarnation() != master.incarnation) == others)
      handles.push_back(handle);
  return handles;
}

std::shared_ptr<WorkerSession> LocalWorker::Impl::session(const std::string& handle) {
  MutexLock lock(mutex_);
  if (down_) std::rethrow_exception(is_down());
  const auto found = sessions_.find(handle);
  if (found == sessions_.end())
    throw AbortedError("Session handle is not found: {}. Possibly this worker (\"{}\") just restarted.",
                       handle, options_.task);
  return found->second;
}

LocalWorker::Impl::Admitted LocalWorker::Impl::admit(const RunPartRequest& request) {
  requests_.add(request.request_id);
  const auto found = session(request.session);
  for (const std::int64_t step : request.over) found->forget(step);
  return {found, found->part(request.part)};
}

PartResult LocalWorker::Impl::run(const Admitted& admitted, const RunPartRequest& request,
                                  const Deadline& deadline, StepCancellation& cancellation) {
  // Whoever cancels the step does so through this one, which tells it from what fails by itself.
  const auto run = admitted.session->begin(request.step, admitted.part, peers_, cancellation);
  StepOptions options{.pool = pools_.at(0),
                      .intra_op_threads = intra_op_threads_,
                      .deadline = deadline.time(),
                      .cancellation = &cancellation};
  try {
    PartResult result = run->run(request, options);
    admitted.session->end(request.step);
    return result;
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    admitted.session->end(request.step);
    std::rethrow_exception(told(error, cancellation.error()));
  }
}

std::exception_ptr LocalWorker::Impl::told(std::exception_ptr error,
                                           const std::exception_ptr& cancelled_with) const {
  if (error == cancelled_with || is_consequence(error)) return error;
  try {
    std::rethrow_exception(error);
  } catch (const DeadlineExceededError& late) {
    if (std::string(late.what()) == "Timed out waiting for notification") return error;
    return std::make_exception_ptr(DeadlineExceededError("From {}:\n{}", options_.task, late.what()));
  } catch (const std::exception& failure) {
    try {
      throw_error(code_of(failure), fmt::format("From {}:\n{}", options_.task, failure.what()));
    } catch (...) {
      return std::current_exception();
    }
  }
}

void LocalWorker::Impl::check_keys(const std::vector<std::string>& keys) const {
  if (keys.empty()) throw InvalidArgumentError("a request for values of a step names none");
  for (const std::string& text : keys) {
    const TransferKey key = parse_transfer_key(text);
    const auto device =
        std::find_if(attributes_.begin(), attributes_.end(),
                     [&](const DeviceAttributes& known) { return known.name == key.send_device; });
    if (device == attributes_.end())
      throw InvalidArgumentError("{} has no device {}", options_.task, key.send_device);
    if (device->incarnation != key.incarnation)
      throw AbortedError(
          "RecvTensor expects a different device incarnation: {} vs. {}. Your worker job (\"{}\") was "
          "probably "
          "restarted. Check your worker job for the reason why it was restarted.",
          key.incarnation, device->incarnation, options_.task);
  }
}

void LocalWorker::Impl::drop(const std::vector<std::string>& containers) {
  std::set<std::string> names(containers.begin(), containers.end());
  if (names.empty() || names.erase("") > 0) names.insert(Containers::kDefault);
  for (const std::string& name : names) {
    variables_.drop(name);
    containers_.drop(name);
  }
}

std::shared_ptr<Call> LocalWorker::Impl::add_watch(
    std::function<void(const TaskStatus*, std::exception_ptr)> on_change) {
  const auto watch = std::make_shared<Watch>(std::move(on_change));
  watch->begin(status());
  bool down = false;
  {
    MutexLock lock(mutex_);
    std::erase_if(watches_, [](const std::shared_ptr<Watch>& known) { return known->has_ended(); });
    down = down_;
    if (!down) watches_.push_back(watch);
  }
  if (down) watch->end(is_down());
  return watch;
}

void LocalWorker::Impl::shut_down() {
  std::map<std::string, std::shared_ptr<WorkerSession>> sessions;
  std::vector<std::shared_ptr<Watch>> watches;
  {
    MutexLock lock(mutex_);
    down_ = true;
    sessions.swap(sessions_);
    watches.swap(watches_);
  }
  for (const auto& [handle, session] : sessions) session->close(is_down());
  for (const auto& watch : watches) watch->end(is_down());
}

}  // namespace kolo::detail
