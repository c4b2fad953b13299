#include <utility>

#include <fmt/format.h>

#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/rpc/channel.h>

#include <kolo/core/cluster/rpc/part_call_internal.h>
#include <kolo/core/cluster/rpc/remote_call_internal.h>
#include <kolo/core/cluster/rpc/transport_internal.h>

namespace kolo::detail {
namespace {

using OnChange = std::function<void(const TaskStatus*, std::exception_ptr)>;

BlockingCall::To to(const std::shared_ptr<RpcChannel>& channel, const std::string& task,
                    std::string_view method, const Deadline& deadline) {
  return {.channel = channel,
          .task = task,
          .method = fmt::format("{}{}", kWorkerService, method),
          .deadline = deadline};
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

void RemoteWorker::on_call(std::string_view method, const Message& request, GraphDef* graph, Message& answer,
                           const Deadline& deadline) {
  call_for(to(channel_, task_, method, deadline), request, graph, answer);
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

void RemoteWorker::get_variables(const std::string& session, const std::vector<VariableKey>& keys,
                                 const std::function<void(std::size_t, Tensor)>& on_value,
                                 const Deadline& deadline) {
  get_variables_of(to(channel_, task_, "GetVariables", deadline), to_def(session, keys), on_value);
}

void RemoteWorker::set_variables(const std::string& session, const std::vector<VariableKey>& keys,
                                 const std::function<Tensor(std::size_t)>& value, const Deadline& deadline) {
  set_variables_of(to(channel_, task_, "SetVariables", deadline), to_def(session, keys), value);
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
