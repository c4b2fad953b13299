// The task of this process, as masters and other tasks reach it: its devices, its variables, and the parts of
// steps that it runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/cluster/worker/peers.h>
#include <kolo/core/cluster/worker/tensor_sink.h>
#include <kolo/core/cluster/worker/worker.h>
#include <kolo/core/runtime/cancellation.h>

namespace kolo::detail {

struct LocalWorkerOptions {
  std::string task;  // /job:ps/replica:0/task:1
  std::uint64_t cluster_fingerprint = 0;
  SessionConfig config = {};    // of the server: devices and threads
  std::size_t sessions = 1000;  // the most that it keeps; beyond: ResourceExhaustedError
};

class LocalWorker final : public Worker, public TensorSource {
 public:
  /// Makes the devices. Throws as make_devices.
  explicit LocalWorker(const LocalWorkerOptions& options);
  /// shutdown(), and waits for the steps.
  ~LocalWorker() override;
  /// Before the first step. peers: outlives this, or the call of shutdown().
  void set_peers(Peers& peers);
  const std::string& task() const;

  std::shared_ptr<Call> run_part(
      const RunPartRequest& request, const Deadline& deadline,
      std::function<void(std::exception_ptr error, PartResult result)> done) override;
  /// The same on the caller's thread, for the master's own part. cancellation: ends it.
  PartResult run_part_here(const RunPartRequest& request, const Deadline& deadline,
                           StepCancellation& cancellation);
  /// Copies each value.
  std::shared_ptr<Call> receive(const TensorsRequest& request,
                                std::shared_ptr<TensorReceiver> receiver) override;
  /// The same without a copy, for who sends the values elsewhere. Cancelling the call ends the sink.
  std::shared_ptr<Call> serve(const TensorsRequest& request, std::shared_ptr<TensorSink> sink) override;
  void get_variables(const std::string& session, const std::vector<VariableKey>& keys,
                     const std::function<void(std::size_t key, Tensor value)>& on_value,
                     const Deadline& deadline) override;
  void set_variables(const std::string& session, const std::vector<VariableKey>& keys,
                     const std::function<Tensor(std::size_t key)>& value, const Deadline& deadline) override;
  std::shared_ptr<Call> watch(
      std::function<void(const TaskStatus* status, std::exception_ptr ended)> on_change) override;

  /// Throws what calls for a session that is not there do.
  void check_session(const std::string& session) const;
  /// Those that a master has left, which has been gone for so long; says so, if there are any.
  void close_sessions_of(const TaskProcess& master, std::chrono::seconds gone);
  /// Those of processes that its task was before; says so, too.
  void close_sessions_before(const TaskProcess& master);
  /// Cancels all steps with UnavailableError `<task> is shutting down`, ends watches; later calls get it.
  /// Idempotent.
  void shutdown();

 private:
  class Impl;
  struct Answers;
  void on_call(std::string_view method, const Message& request, GraphDef* graph, Message& answer,
               const Deadline& deadline) override;

  const std::shared_ptr<Impl> impl_;
};

}  // namespace kolo::detail
