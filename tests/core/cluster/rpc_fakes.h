// A worker and a master that do what a test tells them, behind a real server and real channels.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/rpc/channel.h>
#include <kolo/core/cluster/rpc/rpc_server.h>

#include "tests/core/cluster/fake_calls.h"
#include "tests/core/cluster/typed_calls.h"

namespace kolo::detail {

inline Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }
inline Deadline soon() { return in(std::chrono::seconds(20)); }

inline WorkerSessionRequest session_request(SessionConfig config = {}) {
  return {.session = "ab", .master = "/job:worker/replica:0/task:0", .config = std::move(config)};
}
inline RunPartRequest part_request(std::uint64_t request_id = 0) {
  RunPartRequest request;
  request.session = "ab";
  request.part = 3;
  request.step = 4;
  request.request_id = request_id;
  return request;
}
inline TensorsRequest tensors_request(std::vector<std::string> keys) {
  return {.session = "ab", .step = 1, .receiver = "/job:worker/replica:0/task:0", .keys = std::move(keys)};
}
inline NodeDef node(std::string name, std::string op, std::vector<std::string> inputs = {}) {
  NodeDef made;
  made.name = std::move(name);
  made.op = std::move(op);
  made.inputs = std::move(inputs);
  return made;
}

struct FakeCall final : Call {
  explicit FakeCall(std::function<void()> hook) : on_cancel(std::move(hook)) {}
  void cancel() override { on_cancel(); }
  std::function<void()> on_cancel;
};

/// Keeps what it was asked; what it answers is in its members.
class FakeWorker final : public FakeCalls<Worker>, public TensorSource {
 public:
  using Done = std::function<void(std::exception_ptr, PartResult)>;

  FakeWorker() {
    on<GetStatus>([this](const auto&, const Deadline&) { return to_def(answer_status); });
    on<CreateWorkerSession>([this](const auto& request, const Deadline& deadline) {
      created = {request.session(), request.master(), from_def(request.config()),
                 request.master_incarnation()};
      given_deadline = deadline;
      if (on_create) on_create();
    });
    on<DeleteWorkerSession>([this](const auto& request, const Deadline&) { deleted = request.session(); });
    on<RegisterGraph>([this](const auto& request, const GraphDef& graph, const Deadline& deadline) {
      registered = {graph, checked_names(request.feeds(), "feed"), checked_names(request.fetches(), "fetch"),
                    checked_names(request.targets(), "target")};
      if (on_register) on_register(deadline);
      def::RegisterGraphResponseDef answer;
      answer.set_part(0xfedcba9876543210);
      return answer;
    });
    on<DeregisterGraph>([this](const auto& request, const Deadline&) {
      deregistered = {request.session(), request.part()};
    });
    on<CleanupAll>([this](const auto& request, const Deadline&) {
      dropped = checked_names(request.containers(), "container");
    });
    on<AreInitialized>([](const auto& request, const Deadline&) {
      std::vector<bool> found;
      for (int i = 0; i < request.keys_size(); ++i) found.push_back(i % 2 == 0);
      return to_def(found);
    });
    on<WriteShard>([this](const auto& request, const Deadline&) {
      saved_at = place_from(request);
      keep(request.variables());
      return to_def(WrittenShard{.sums = std::vector<std::uint32_t>(saved.size(), 0xfedcba98),
                                 .file_bytes = std::uint64_t{1} << 40,
                                 .header_crc32c = 0x87654321});
    });
    on<ReadShard>([this](const auto& request, const Deadline&) { keep(request.variables()); });
    on<RandomPositions>([this](const auto&, const Deadline&) { return to_def("", positions); });
    on<SetRandomPositions>(
        [this](const auto& request, const Deadline&) { positions = positions_from(request); });
  }
  std::shared_ptr<Call> run_part(const RunPartRequest& request, const Deadline&, Done done) override {
    ran = request;
    return on_run(request, std::move(done));
  }
  std::shared_ptr<Call> receive(const TensorsRequest&, std::shared_ptr<TensorReceiver>) override {
    throw UnimplementedError("a fake");
  }
  std::shared_ptr<Call> serve(const TensorsRequest& request, std::shared_ptr<TensorSink> sink) override {
    return on_serve(request, std::move(sink));
  }
  void get_variables(const std::string&, const std::vector<VariableKey>& keys,
                     const std::function<void(std::size_t, Tensor)>& on_value, const Deadline&) override {
    asked = keys;
    for (std::size_t i = 0; i < keys.size(); ++i) on_value(i, variables.at(i));
  }
  void set_variables(const std::string&, const std::vector<VariableKey>& keys,
                     const std::function<Tensor(std::size_t)>& value, const Deadline&) override {
    asked = keys;
    set.clear();
    for (std::size_t i = 0; i < keys.size(); ++i) set.push_back(value(i));
  }
  std::shared_ptr<Call> watch(std::function<void(const TaskStatus*, std::exception_ptr)>) override {
    throw UnimplementedError("a fake");
  }

  TaskStatus answer_status;
  WorkerSessionRequest created;
  Deadline given_deadline;
  std::function<void()> on_create;
  std::function<void(const Deadline&)> on_register;
  std::string deleted;
  PartRequest registered;
  std::pair<std::string, std::uint64_t> deregistered;
  RunPartRequest ran;
  std::function<std::shared_ptr<Call>(const RunPartRequest&, Done)> on_run;
  std::function<std::shared_ptr<Call>(const TensorsRequest&, std::shared_ptr<TensorSink>)> on_serve;
  std::vector<std::string> dropped;
  std::vector<VariableKey> asked;
  std::vector<Tensor> variables;
  std::vector<Tensor> set;
  ShardPlace saved_at;
  std::vector<SavedVariable> saved;
  std::map<std::string, std::uint64_t> positions;

 private:
  void keep(const SavedVariableDefs& variables) {
    asked = keys_from(variables), saved = variables_from(variables);
  }
};

class FakeMaster final : public FakeCalls<Master> {
 public:
  FakeMaster() {
    on<CreateSession>([this](const auto& request, const GraphDef& graph, const Deadline& deadline) {
      created = {graph, from_def(request.config())};
      caller = rpc_caller();
      if (on_create) on_create(deadline.stop());
      def::CreateSessionResponseDef answer;
      answer.set_handle("00112233445566778899aabbccddeeff");
      answer.set_graph_version(7);
      return answer;
    });
    on<ExtendSession>([this](const auto& request, const GraphDef& nodes, const Deadline&) {
      created.first = nodes;
      def::ExtendSessionResponseDef answer;
      answer.set_version(request.version() + 1);
      return answer;
    });
    on<MakeCallable>([this](const auto& request, const Deadline&) {
      bound = from_def(request.names());
      def::CallableDef answer;
      answer.set_callable(5);
      return answer;
    });
    on<ReleaseCallable>([this](const auto& request, const Deadline&) { released = request.callable(); });
    on<CloseSession>([](const auto& request, const Deadline&) {
      throw AbortedError("Session {} is not found. Possibly, this master has restarted.", request.session());
    });
    on<ListDevices>([this](const auto&, const Deadline&) {
      def::DevicesDef answer;
      for (const auto& device : devices) *answer.add_devices() = to_def(device);
      return answer;
    });
    on<Reset>([this](const auto& request, const Deadline&) {
      dropped = checked_names(request.containers(), "container");
    });
    on<AreInitialized>([](const auto& request, const Deadline&) {
      return to_def(std::vector<bool>(names_of(request).size(), true));
    });
    on<WriteShards>([this](const auto& request, const Deadline&) {
      saved_at = place_from(request), saved = variables_from(request.variables());
      def::WriteShardsResponseDef answer;
      *answer.add_shards() =
          to_def(WrittenShard{.variables = {1}, .sums = {7}, .file_bytes = 8, .header_crc32c = 9});
      *answer.add_shards() =
          to_def(WrittenShard{.variables = {0}, .sums = {17}, .file_bytes = 18, .header_crc32c = 19});
      return answer;
    });
    on<ReadShards>(
        [this](const auto& request, const Deadline&) { saved = variables_from(request.variables()); });
    on<RandomPositions>([this](const auto&, const Deadline&) { return to_def("", positions); });
    on<SetRandomPositions>(
        [this](const auto& request, const Deadline&) { positions = positions_from(request); });
  }
  StepResult run_step(const RunStepRequest& request, const Deadline& deadline) override {
    ran = request;
    return on_run(request, deadline.stop());
  }
  void get_variables(const std::string&, const std::vector<std::string>& names,
                     const std::function<void(std::size_t, Tensor)>& on_value, const Deadline&) override {
    for (std::size_t i = 0; i < names.size(); ++i) on_value(i, Tensor::scalar<float>(static_cast<float>(i)));
  }
  void set_variables(const std::string&, const std::vector<std::string>& names,
                     const std::function<Tensor(std::size_t)>& value, const Deadline&) override {
    for (std::size_t i = 0; i < names.size(); ++i) value(i);
  }
  std::shared_ptr<Call> watch(const std::string& session,
                              std::function<void(std::exception_ptr)> ended) override {
    watched.set_value(session);
    return std::make_shared<FakeCall>([this, ended = std::move(ended)] {
      ended(std::make_exception_ptr(CancelledError("the client left")));
      left.set_value();
    });
  }

  std::pair<GraphDef, SessionConfig> created;
  std::string caller;
  std::function<void(std::stop_token)> on_create;
  RunStepRequest ran;
  std::function<StepResult(const RunStepRequest&, std::stop_token)> on_run;
  StepNames bound;
  std::int64_t released = 0;
  std::vector<DeviceAttributes> devices;
  std::vector<std::string> dropped;
  ShardPlace saved_at;
  std::vector<SavedVariable> saved;
  std::map<std::string, std::uint64_t> positions;
  std::promise<std::string> watched;
  std::promise<void> left;
};

/// A server of /job:ps/replica:0/task:0 in front of the fakes.
struct FakeTask {
  static constexpr std::uint64_t kFingerprint = 0x1234;
  static RpcServerOptions at(std::string address) {
    return {.task = "/job:ps/replica:0/task:0", .address = std::move(address)};
  }

  explicit FakeTask(RpcServerOptions options = at("localhost:0"), bool start_now = true)
      : server(std::move(options)) {
    if (start_now) start();
  }
  void start() {
    server.start({.worker = worker,
                  .tensors = worker,
                  .master = master,
                  .cluster_fingerprint = kFingerprint,
                  .streams = streams,
                  .on_watcher = on_watcher,
                  .check_session = check_session});
  }
  Caller caller() const {
    return {.name = "/job:worker/replica:0/task:0", .cluster_fingerprint = kFingerprint};
  }
  std::shared_ptr<RemoteWorker> remote_worker() const { return remote_worker(caller()); }
  std::shared_ptr<RemoteWorker> remote_worker(Caller caller) const {
    return std::make_shared<RemoteWorker>(make_channel(server.address(), std::move(caller)),
                                          "/job:ps/replica:0/task:0");
  }
  std::shared_ptr<RemoteMaster> remote_master(Caller caller = {}) const {
    return std::make_shared<RemoteMaster>(make_channel(server.address(), std::move(caller)));
  }

  FakeWorker worker;
  FakeMaster master;
  std::shared_ptr<StepStreams> streams;
  std::function<void(const TaskProcess&, WatcherEvent)> on_watcher;
  std::function<void(const std::string&)> check_session;
  RpcServer server;
};

/// Tensors as they come; wait() until the call has ended.
class KeptTensors final : public TensorReceiver {
 public:
  explicit KeptTensors(std::size_t keys) : values(keys), dead(keys, false) {}
  Tensor memory_for(std::size_t, DType dtype, const Shape& shape) override { return {dtype, shape}; }
  void arrived(std::size_t key, Tensor value, bool is_dead) override {
    values[key] = std::move(value);
    dead[key] = is_dead;
  }
  void ended(std::exception_ptr error) override { end_.set_value(std::move(error)); }
  void wait() {
    auto end = end_.get_future();
    if (end.wait_for(std::chrono::seconds(30)) != std::future_status::ready)
      throw InternalError("the call did not end within 30 s");
    if (const auto error = end.get()) std::rethrow_exception(error);
  }

  std::vector<Tensor> values;
  std::vector<bool> dead;

 private:
  std::promise<std::exception_ptr> end_;
};

}  // namespace kolo::detail
