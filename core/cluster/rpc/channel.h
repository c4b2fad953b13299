// The way to one task: a connection that is made when it is first needed, watched by pings, and made anew
// when it breaks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <kolo/core/cluster/master/master.h>
#include <kolo/core/cluster/rpc/caller.h>
#include <kolo/core/cluster/worker/worker.h>

namespace kolo::detail {

class RpcChannel;
class StepStreams;

/// Does not connect. Throws InvalidArgumentError `Could not interpret "<addr>" as a host-port pair.` Calls
/// over it throw UnavailableError `<addr>: connection closed` or `<addr>: no answer for 4 s` where the peer
/// is lost during the call, one naming address and reason within 5 s where nobody is there.
std::shared_ptr<RpcChannel> make_channel(const std::string& address, Caller caller);

/// The task `task` behind a channel. All calls tell whom they mean: another task, or one of another cluster
/// or version, refuses them with FailedPreconditionError.
/// Callbacks of asynchronous calls come on threads of the transport: they must not block.
class RemoteWorker final : public Worker {
 public:
  /// streams: with them values between this process and the task ride on the calls that run parts.
  RemoteWorker(std::shared_ptr<RpcChannel> channel, std::string task,
               std::shared_ptr<StepStreams> streams = nullptr);

  std::shared_ptr<Call> run_part(const RunPartRequest& request, const Deadline& deadline,
                                 std::function<void(std::exception_ptr, PartResult)> done) override;
  std::shared_ptr<Call> receive(const TensorsRequest& request,
                                std::shared_ptr<TensorReceiver> receiver) override;
  void get_variables(const std::string& session, const std::vector<VariableKey>& keys,
                     const std::function<void(std::size_t, Tensor)>& on_value,
                     const Deadline& deadline) override;
  void set_variables(const std::string& session, const std::vector<VariableKey>& keys,
                     const std::function<Tensor(std::size_t)>& value, const Deadline& deadline) override;
  std::shared_ptr<Call> watch(std::function<void(const TaskStatus*, std::exception_ptr)> on_change) override;

  /// Over the watches that stand: this process stops on purpose. Its end is then no loss to the other one.
  void say_stopping();
  /// Afterwards: until the other one has ended these watches, by which it says that it has heard it. A watch
  /// that is cancelled before may take the message with it.
  void wait_until_stopping_is_heard(std::chrono::steady_clock::time_point deadline);

 private:
  struct Watches;
  class WatchCall;
  void on_call(std::string_view method, const Message& request, GraphDef* graph, Message& answer,
               const Deadline& deadline) override;

  std::shared_ptr<RpcChannel> channel_;
  std::string task_;
  std::shared_ptr<StepStreams> streams_;
  std::shared_ptr<Watches> watches_;
};

/// The master of the server behind a channel.
class RemoteMaster final : public Master {
 public:
  explicit RemoteMaster(std::shared_ptr<RpcChannel> channel) : channel_(std::move(channel)) {}

  StepResult run_step(const RunStepRequest& request, const Deadline& deadline) override;
  void get_variables(const std::string& session, const std::vector<std::string>& names,
                     const std::function<void(std::size_t, Tensor)>& on_value,
                     const Deadline& deadline) override;
  void set_variables(const std::string& session, const std::vector<std::string>& names,
                     const std::function<Tensor(std::size_t)>& value, const Deadline& deadline) override;
  std::shared_ptr<Call> watch(const std::string& session,
                              std::function<void(std::exception_ptr)> ended) override;

 private:
  void on_call(std::string_view method, const Message& request, GraphDef* graph, Message& answer,
               const Deadline& deadline) override;

  std::shared_ptr<RpcChannel> channel_;
};

}  // namespace kolo::detail
