#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/rpc/channel.h>

#include <kolo/core/cluster/rpc/part_call_internal.h>
#include <kolo/core/cluster/rpc/remote_call_internal.h>
#include <kolo/core/cluster/rpc/shard_messages_internal.h>
#include <kolo/core/cluster/rpc/transport_internal.h>

namespace kolo::detail {
namespace {

namespace def = kolo::cluster;
using OnChange = std::function<void(const TaskStatus*, std::exception_ptr)>;

BlockingCall::To to(const std::shared_ptr<RpcChannel>& channel, const std::string& task, const char* method,
                    const Deadline& deadline) {
  return {
      .channel = channel, .task = task, .method = std::string(kWorkerService) + method, .deadline = deadline};
}

}  // namespace

struct RemoteWorker::Watches {
  Mutex mutex;
  CondVar changed;
  std::vector<std::weak_ptr<WatchCall>> calls KOLO_GUARDED_BY(mutex);
  int told KOLO_GUARDED_BY(mutex) = 0;  // of the stop, and not ended yet
};

class RemoteWorker::WatchCall final : public ClientCall {
 public:
  WatchCall(const BlockingCall::To& to, OnChange on_change, std::shared_ptr<Watches> watches)
      : ClientCall(to.channel, to.method, to.task, to.deadline),
        on_change_(std::move(on_change)),
        watches_(std::move(watches)) {}

  void tell_of_stop() KOLO_EXCLUDES(watches_->mutex) {
    {
      MutexLock lock(watches_->mutex);
      if (ended_ || std::exchange(told_, true)) return;
      ++watches_->told;
    }
    def::WatchRequestDef message;
    message.set_stopping(true);
    send(Outgoing::control(message), true);
  }

 private:
  Next on_message(const MessagePieces& message) override {
    const TaskStatus status = from_def(parsed<def::TaskStatusDef>(message.joined()));
    on_change_(&status, nullptr);
    return Next::read;
  }
  void on_end(std::exception_ptr error) override {
    if (error == nullptr)
      error = std::make_exception_ptr(UnavailableError("{}: connection closed", channel().address()));
    std::exchange(on_change_, nullptr)(nullptr, std::move(error));
    MutexLock lock(watches_->mutex);
    ended_ = true;
    if (told_ && --watches_->told == 0) watches_->changed.notify_all();
  }

  OnChange on_change_;
  const std::shared_ptr<Watches> watches_;
  bool told_ KOLO_GUARDED_BY(watches_->mutex) = false;
  bool ended_ KOLO_GUARDED_BY(watches_->mutex) = false;
};

RemoteWorker::RemoteWorker(std::shared_ptr<RpcChannel> channel, std::string task,
                           std::shared_ptr<StepStreams> streams)
    : channel_(std::move(channel)),
      task_(std::move(task)),
      streams_(std::move(streams)),
      watches_(std::make_shared<Watches>()) {}

TaskStatus RemoteWorker::status(const Deadline& deadline) {
  return from_def(call<def::TaskStatusDef>(to(channel_, task_, "GetStatus", deadline), def::Empty()));
}

void RemoteWorker::create_session(const WorkerSessionRequest& request, const Deadline& deadline) {
  def::WorkerSessionRequestDef message;
  message.set_session(request.session);
  message.set_master(request.master);
  message.set_master_incarnation(channel_->caller().incarnation);
  *message.mutable_config() = to_def(request.config);
  call<def::Empty>(to(channel_, task_, "CreateWorkerSession", deadline), message);
}

void RemoteWorker::delete_session(const std::string& session, const Deadline& deadline) {
  def::SessionRequestDef message;
  message.set_session(session);
  call<def::Empty>(to(channel_, task_, "DeleteWorkerSession", deadline), message);
}

std::uint64_t RemoteWorker::register_part(const PartRequest& request, const Deadline& deadline) {
  def::RegisterGraphRequestDef message;
  message.set_session(request.session);
  put_strings(*message.mutable_feeds(), request.feeds);
  put_strings(*message.mutable_fetches(), request.fetches);
  put_strings(*message.mutable_targets(), request.targets);
  const auto answer = call_with_graph(to(channel_, task_, "RegisterGraph", deadline), message, request.graph);
  return parsed<def::RegisterGraphResponseDef>(answer).part();
}

void RemoteWorker::deregister_part(const std::string& session, std::uint64_t part, const Deadline& deadline) {
  def::DeregisterGraphRequestDef message;
  message.set_session(session);
  message.set_part(part);
  call<def::Empty>(to(channel_, task_, "DeregisterGraph", deadline), message);
}

std::shared_ptr<Call> RemoteWorker::run_part(const RunPartRequest& request, const Deadline& deadline,
                                             PartCall::Done done) {
  return PartCall::start(to(channel_, task_, "RunGraph", deadline), request, streams_, std::move(done));
}

std::shared_ptr<Call> RemoteWorker::receive(const TensorsRequest& request,
                                            std::shared_ptr<TensorReceiver> receiver) {
  if (streams_ != nullptr && streams_->receive(request, task_, receiver)) return std::make_shared<NoCall>();
  const auto call =
      std::make_shared<ReceiveCall>(to(channel_, task_, "RecvTensors", {}), request, std::move(receiver));
  call->start();
  return call;
}

void RemoteWorker::cleanup_containers(const std::vector<std::string>& containers, const Deadline& deadline) {
  def::ContainersRequestDef message;
  put_strings(*message.mutable_containers(), containers);
  call<def::Empty>(to(channel_, task_, "CleanupAll", deadline), message);
}

void RemoteWorker::get_variables(const std::string& session, const std::vector<VariableKey>& keys,
                                 const std::function<void(std::size_t, Tensor)>& on_value,
                                 const Deadline& deadline) {
  get_variables_of(to(channel_, task_, "GetVariables", deadline), to_def(session, keys), on_value);
}

void RemoteWorker::set_variables(const std::string& session, const std::vector<VariableKey>& keys,
                                 const std::function<Tensor(std::size_t)>& value, const Deadline& deadline) {
  set_variables_of(to(channel_, task_, "SetVariables", deadline), to_def(session, keys), value);
}

std::vector<bool> RemoteWorker::are_initialized(const std::string& session,
                                                const std::vector<VariableKey>& keys,
                                                const Deadline& deadline) {
  return are_initialized_of(to(channel_, task_, "GetVariables", deadline), to_def(session, keys));
}

WrittenShard RemoteWorker::write_shard(const std::string& session, const ShardPlace& place,
                                       const std::vector<VariableKey>& keys,
                                       const std::vector<SavedVariable>& variables,
                                       const Deadline& deadline) {
  const auto answer = call<def::WriteShardResponseDef>(to(channel_, task_, "WriteShard", deadline),
                                                       to_def(session, place, keys, variables));
  return from_def(answer, variables.size(), false);
}

void RemoteWorker::read_shard(const std::string& session, const std::vector<VariableKey>& keys,
                              const std::vector<SavedVariable>& variables, const Deadline& deadline) {
  call<def::Empty>(to(channel_, task_, "ReadShard", deadline), to_def(session, keys, variables));
}

std::map<std::string, std::uint64_t> RemoteWorker::random_positions(const std::string& session,
                                                                    const Deadline& deadline) {
  return positions_from(call<def::RandomPositionsDef>(to(channel_, task_, "RandomPositions", deadline),
                                                      to_def(session, {}, false)));
}

void RemoteWorker::set_random_positions(const std::string& session,
                                        const std::map<std::string, std::uint64_t>& positions,
                                        const Deadline& deadline) {
  call<def::RandomPositionsDef>(to(channel_, task_, "RandomPositions", deadline),
                                to_def(session, positions, true));
}

std::shared_ptr<Call> RemoteWorker::watch(OnChange on_change) {
  const auto call =
      std::make_shared<WatchCall>(to(channel_, task_, "Watch", {}), std::move(on_change), watches_);
  def::WatchRequestDef message;
  message.set_incarnation(channel_->caller().incarnation);
  call->send(Outgoing::control(message), false);
  {
    MutexLock lock(watches_->mutex);
    std::erase_if(watches_->calls, [](const auto& watch) { return watch.expired(); });
    watches_->calls.push_back(call);
  }
  call->start();
  return call;
}

void RemoteWorker::say_stopping() {
  std::vector<std::weak_ptr<WatchCall>> calls;
  {
    MutexLock lock(watches_->mutex);
    calls = watches_->calls;
  }
  for (const auto& watch : calls)
    if (const auto call = watch.lock()) call->tell_of_stop();
}

void RemoteWorker::wait_until_stopping_is_heard(std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(watches_->mutex);
  while (watches_->told > 0)
    if (!watches_->changed.wait_until(watches_->mutex, deadline)) return;
}

}  // namespace kolo::detail
