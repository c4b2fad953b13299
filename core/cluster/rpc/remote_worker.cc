#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/rpc/channel.h>

#include <kolo/core/cluster/rpc/remote_call_internal.h>
#include <kolo/core/cluster/rpc/shard_messages_internal.h>
#include <kolo/core/cluster/rpc/transport_internal.h>

namespace kolo::detail {
namespace {

namespace def = kolo::cluster;
using Done = std::function<void(std::exception_ptr, PartResult)>;
using OnChange = std::function<void(const TaskStatus*, std::exception_ptr)>;

BlockingCall::To to(const std::shared_ptr<RpcChannel>& channel, const std::string& task, const char* method,
                    Deadline deadline) {
  return {
      .channel = channel, .task = task, .method = std::string(kWorkerService) + method, .deadline = deadline};
}

class PartCall final : public ClientCall {
 public:
  PartCall(const BlockingCall::To& to, Done done, std::size_t most_fetches)
      : ClientCall(to.channel, to.method, to.task, to.deadline),
        done_(std::move(done)),
        most_fetches_(most_fetches),
        response_(true, most_fetches, to.channel->limits()) {}

 private:
  Next on_message(const MessagePieces& message) override {
    response_.read(message);
    return !std::exchange(first_read_, true) && response_.is_only_control() ? Next::none : Next::read;
  }
  void on_end(std::exception_ptr error) override {
    PartResult result;
    try {
      if (error == nullptr) {
        response_.check_complete();
        auto run = run_response(response_, most_fetches_);
        result = {.fetches = std::move(run.fetches), .metadata = std::move(run.metadata)};
      }
    } catch (...) {
      error = std::current_exception();
    }
    std::exchange(done_, nullptr)(std::move(error), std::move(result));
  }

  Done done_;
  const std::size_t most_fetches_;
  bool first_read_ = false;
  Response response_;
};

class ReceiveCall final : public ClientCall, public PayloadTarget {
 public:
  ReceiveCall(const BlockingCall::To& to, std::size_t keys, std::shared_ptr<TensorReceiver> receiver)
      : ClientCall(to.channel, to.method, to.task, to.deadline),
        receiver_(std::move(receiver)),
        came_(keys, false),
        missing_(keys),
        reader_(*this, to.channel->limits()) {}

 private:
  Next on_message(const MessagePieces& message) override {
    reader_.read(message.pieces());
    return Next::read;
  }
  Tensor memory_for(std::size_t key, DType dtype, const Shape& shape) override {
    check(key);
    return receiver_->memory_for(key, dtype, shape);
  }
  void on_tensor(std::size_t key, Tensor value, bool dead, bool absent) override {
    check(key);
    if (absent) throw InvalidArgumentError("value {} came without one", key);
    came_[key] = true;
    --missing_;
    receiver_->arrived(key, std::move(value), dead);
  }
  void on_bytes(PayloadKind /*kind*/, std::string /*bytes*/) override {
    throw InvalidArgumentError("other bytes came where values were asked for");
  }
  void on_end(std::exception_ptr error) override {
    if (error == nullptr && missing_ > 0)
      error = std::make_exception_ptr(DataLossError("{} ended with {} of {} values missing",
                                                    channel().address(), missing_, came_.size()));
    std::exchange(receiver_, nullptr)->ended(std::move(error));
  }
  void check(std::size_t key) const {
    if (key >= came_.size()) throw InvalidArgumentError("value {} of {} came", key, came_.size());
    if (came_[key]) throw InvalidArgumentError("value {} came twice", key);
  }

  std::shared_ptr<TensorReceiver> receiver_;
  std::vector<bool> came_;
  std::size_t missing_;
  PayloadReader reader_;
};

class WatchCall final : public ClientCall {
 public:
  WatchCall(const BlockingCall::To& to, OnChange on_change)
      : ClientCall(to.channel, to.method, to.task, to.deadline), on_change_(std::move(on_change)) {}

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
  }

  OnChange on_change_;
};

}  // namespace

struct RemoteWorker::Watches {
  Mutex mutex;
  std::vector<std::weak_ptr<ClientCall>> calls KOLO_GUARDED_BY(mutex);
};

RemoteWorker::RemoteWorker(std::shared_ptr<RpcChannel> channel, std::string task)
    : channel_(std::move(channel)), task_(std::move(task)), watches_(std::make_shared<Watches>()) {}

TaskStatus RemoteWorker::status(Deadline deadline) {
  return from_def(call<def::TaskStatusDef>(to(channel_, task_, "GetStatus", deadline), def::Empty()));
}

void RemoteWorker::create_session(const WorkerSessionRequest& request, Deadline deadline) {
  def::WorkerSessionRequestDef message;
  message.set_session(request.session);
  message.set_master(request.master);
  *message.mutable_config() = to_def(request.config);
  call<def::Empty>(to(channel_, task_, "CreateWorkerSession", deadline), message);
}

void RemoteWorker::delete_session(const std::string& session, Deadline deadline) {
  def::SessionRequestDef message;
  message.set_session(session);
  call<def::Empty>(to(channel_, task_, "DeleteWorkerSession", deadline), message);
}

std::uint64_t RemoteWorker::register_part(const PartRequest& request, Deadline deadline) {
  def::RegisterGraphRequestDef message;
  message.set_session(request.session);
  put_strings(*message.mutable_feeds(), request.feeds);
  put_strings(*message.mutable_fetches(), request.fetches);
  put_strings(*message.mutable_targets(), request.targets);
  const auto answer = call_with_graph(to(channel_, task_, "RegisterGraph", deadline), message, request.graph);
  return parsed<def::RegisterGraphResponseDef>(answer).part();
}

void RemoteWorker::deregister_part(const std::string& session, std::uint64_t part, Deadline deadline) {
  def::DeregisterGraphRequestDef message;
  message.set_session(session);
  message.set_part(part);
  call<def::Empty>(to(channel_, task_, "DeregisterGraph", deadline), message);
}

std::shared_ptr<Call> RemoteWorker::run_part(const RunPartRequest& request, Deadline deadline, Done done) {
  // Fetches of a part in another process there are as many as its graph says, which the caller has sent.
  constexpr std::size_t kMostFetches = 65536;
  def::RunGraphRequestDef message;
  message.set_session(request.session);
  message.set_part(request.part);
  message.set_step(request.step);
  message.set_request_id(request.request_id);
  message.set_trace_level(static_cast<std::uint32_t>(request.trace_level));
  message.set_metadata(request.metadata);
  for (const std::int64_t step : request.over) message.add_over(step);
  message.set_feeds(static_cast<std::uint32_t>(request.feeds.size()));
  const auto call =
      std::make_shared<PartCall>(to(channel_, task_, "RunGraph", deadline), std::move(done), kMostFetches);
  call->send(Outgoing::control(message), request.feeds.empty());
  for (std::size_t i = 0; i < request.feeds.size(); ++i)
    call->send(Outgoing::tensor(i, request.feeds[i], channel_->limits().chunk_bytes),
               i + 1 == request.feeds.size());
  call->start();
  return call;
}

std::shared_ptr<Call> RemoteWorker::receive(const TensorsRequest& request,
                                            std::shared_ptr<TensorReceiver> receiver) {
  def::RecvTensorsRequestDef message;
  message.set_session(request.session);
  message.set_step(request.step);
  message.set_receiver(request.receiver);
  put_strings(*message.mutable_keys(), request.keys);
  const auto call = std::make_shared<ReceiveCall>(to(channel_, task_, "RecvTensors", std::nullopt),
                                                  request.keys.size(), std::move(receiver));
  call->send(Outgoing::control(message), true);
  call->start();
  return call;
}

void RemoteWorker::cleanup_step(const std::string& session, std::int64_t step, Deadline deadline) {
  def::CleanupGraphRequestDef message;
  message.set_session(session);
  message.set_step(step);
  call<def::Empty>(to(channel_, task_, "CleanupGraph", deadline), message);
}

void RemoteWorker::cleanup_containers(const std::vector<std::string>& containers, Deadline deadline) {
  def::ContainersRequestDef message;
  put_strings(*message.mutable_containers(), containers);
  call<def::Empty>(to(channel_, task_, "CleanupAll", deadline), message);
}

void RemoteWorker::get_variables(const std::string& session, const std::vector<VariableKey>& keys,
                                 const std::function<void(std::size_t, Tensor)>& on_value,
                                 Deadline deadline) {
  get_variables_of(to(channel_, task_, "GetVariables", deadline), to_def(session, keys), on_value);
}

void RemoteWorker::set_variables(const std::string& session, const std::vector<VariableKey>& keys,
                                 const std::function<Tensor(std::size_t)>& value, Deadline deadline) {
  set_variables_of(to(channel_, task_, "SetVariables", deadline), to_def(session, keys), value);
}

std::vector<bool> RemoteWorker::are_initialized(const std::string& session,
                                                const std::vector<VariableKey>& keys, Deadline deadline) {
  return are_initialized_of(to(channel_, task_, "GetVariables", deadline), to_def(session, keys));
}

WrittenShard RemoteWorker::write_shard(const std::string& session, const ShardPlace& place,
                                       const std::vector<VariableKey>& keys,
                                       const std::vector<SavedVariable>& variables, Deadline deadline) {
  const auto answer = call<def::WriteShardResponseDef>(to(channel_, task_, "WriteShard", deadline),
                                                       to_def(session, place, keys, variables));
  return from_def(answer, variables.size(), false);
}

void RemoteWorker::read_shard(const std::string& session, const std::vector<VariableKey>& keys,
                              const std::vector<SavedVariable>& variables, Deadline deadline) {
  call<def::Empty>(to(channel_, task_, "ReadShard", deadline), to_def(session, keys, variables));
}

std::map<std::string, std::uint64_t> RemoteWorker::random_positions(const std::string& session,
                                                                    Deadline deadline) {
  return positions_from(call<def::RandomPositionsDef>(to(channel_, task_, "RandomPositions", deadline),
                                                      to_def(session, {}, false)));
}

void RemoteWorker::set_random_positions(const std::string& session,
                                        const std::map<std::string, std::uint64_t>& positions,
                                        Deadline deadline) {
  call<def::RandomPositionsDef>(to(channel_, task_, "RandomPositions", deadline),
                                to_def(session, positions, true));
}

std::shared_ptr<Call> RemoteWorker::watch(OnChange on_change) {
  const auto call =
      std::make_shared<WatchCall>(to(channel_, task_, "Watch", std::nullopt), std::move(on_change));
  call->send(Outgoing::control(def::WatchRequestDef()), false);
  {
    MutexLock lock(watches_->mutex);
    std::erase_if(watches_->calls, [](const auto& watch) { return watch.expired(); });
    watches_->calls.push_back(call);
  }
  call->start();
  return call;
}

void RemoteWorker::say_stopping() {
  std::vector<std::weak_ptr<ClientCall>> calls;
  {
    MutexLock lock(watches_->mutex);
    calls = watches_->calls;
  }
  def::WatchRequestDef message;
  message.set_stopping(true);
  for (const auto& watch : calls)
    if (const auto call = watch.lock()) call->send(Outgoing::control(message), true);
}

}  // namespace kolo::detail
