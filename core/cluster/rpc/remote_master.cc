#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/rpc/channel.h>

#include <kolo/core/cluster/rpc/remote_call_internal.h>
#include <kolo/core/cluster/rpc/shard_messages_internal.h>
#include <kolo/core/cluster/rpc/transport_internal.h>

namespace kolo::detail {
namespace {

namespace def = kolo::cluster;

// The master takes the time off again: whom it waited for only it knows.
BlockingCall::To to(const std::shared_ptr<RpcChannel>& channel, const char* method,
                    const Deadline& deadline) {
  return {.channel = channel,
          .task = "",
          .method = std::string(kMasterService) + method,
          .deadline = deadline.shifted(kAnswerTime)};
}

// To a master a variable is its name alone.
def::VariablesRequestDef named(const std::string& session, const std::vector<std::string>& names) {
  def::VariablesRequestDef message;
  message.set_session(session);
  for (const auto& name : names) message.add_keys()->set_name(name);
  return message;
}

class ClientWatch final : public ClientCall {
 public:
  ClientWatch(const BlockingCall::To& to, std::function<void(std::exception_ptr)> ended)
      : ClientCall(to.channel, to.method, to.task, to.deadline), ended_(std::move(ended)) {}

 private:
  Next on_message(const MessagePieces& /*message*/) override { return Next::read; }
  void on_end(std::exception_ptr error) override { std::exchange(ended_, nullptr)(std::move(error)); }

  std::function<void(std::exception_ptr)> ended_;
};

}  // namespace

CreatedSession RemoteMaster::create_session(const GraphDef& graph, const SessionConfig& config,
                                            const Deadline& deadline) {
  def::CreateSessionRequestDef message;
  *message.mutable_config() = to_def(config);
  const auto answer = parsed<def::CreateSessionResponseDef>(
      call_with_graph(to(channel_, "CreateSession", deadline), message, graph));
  return {.handle = checked_handle(answer.handle()),
          .graph_version = answer.graph_version(),
          .operation_timeout_in_ms = answer.operation_timeout_in_ms()};
}

std::int64_t RemoteMaster::extend_session(const std::string& session, std::int64_t version,
                                          const GraphDef& nodes, const Deadline& deadline) {
  def::ExtendSessionRequestDef message;
  message.set_session(session);
  message.set_version(version);
  const auto answer = call_with_graph(to(channel_, "ExtendSession", deadline), message, nodes);
  return parsed<def::ExtendSessionResponseDef>(answer).version();
}

StepResult RemoteMaster::run_step(const RunStepRequest& request, const Deadline& deadline) {
  def::RunStepRequestDef message;
  message.set_session(request.session);
  message.set_callable(request.callable);
  if (request.callable == 0) *message.mutable_names() = to_def(request.names);
  message.set_trace_level(static_cast<std::uint32_t>(request.trace_level));
  message.set_metadata(request.metadata);
  message.set_request_id(request.request_id);
  message.set_feeds(static_cast<std::uint32_t>(request.feeds.size()));
  // Of a callable only the master knows how many there are.
  constexpr std::size_t kMostFetches = 65536;
  const std::size_t fetches = request.callable == 0 ? request.names.fetches.size() : kMostFetches;

  const auto method = to(channel_, request.callable == 0 ? "RunStep" : "RunCallable", deadline);
  // With metadata wanted, or a callable, more may come than the control message.
  const bool more = request.metadata || request.trace_level != TraceLevel::no_trace;
  const auto call =
      std::make_shared<BlockingCall>(method, true, std::max<std::size_t>(fetches, more ? 1 : 0), false);
  call->send(Outgoing::control(message), request.feeds.empty());
  for (std::size_t i = 0; i < request.feeds.size(); ++i)
    call->send(Outgoing::tensor(i, request.feeds[i], channel_->limits().chunk_bytes),
               i + 1 == request.feeds.size());
  call->start();
  auto run = run_response(call->end(), fetches);
  return {.fetches = std::move(run.fetches),
          .metadata = std::move(run.metadata),
          .placement_lines = std::move(run.placement_lines)};
}

std::int64_t RemoteMaster::make_callable(const std::string& session, const StepNames& names,
                                         const Deadline& deadline) {
  def::MakeCallableRequestDef message;
  message.set_session(session);
  *message.mutable_names() = to_def(names);
  return call<def::CallableDef>(to(channel_, "MakeCallable", deadline), message).callable();
}

void RemoteMaster::release_callable(const std::string& session, std::int64_t callable,
                                    const Deadline& deadline) {
  def::CallableDef message;
  message.set_session(session);
  message.set_callable(callable);
  call<def::Empty>(to(channel_, "ReleaseCallable", deadline), message);
}

void RemoteMaster::close_session(const std::string& session, const Deadline& deadline) {
  def::SessionRequestDef message;
  message.set_session(session);
  call<def::Empty>(to(channel_, "CloseSession", deadline), message);
}

std::vector<DeviceAttributes> RemoteMaster::list_devices(const std::string& session,
                                                         const Deadline& deadline) {
  def::SessionRequestDef message;
  message.set_session(session);
  const auto answer = call<def::DevicesDef>(to(channel_, "ListDevices", deadline), message);
  std::vector<DeviceAttributes> devices;
  for (const auto& device : answer.devices()) devices.push_back(from_def(device));
  return devices;
}

void RemoteMaster::reset(const std::vector<std::string>& containers, const SessionConfig& config,
                         const Deadline& deadline) {
  def::ContainersRequestDef message;
  put_strings(*message.mutable_containers(), containers);
  *message.mutable_config() = to_def(config);
  call<def::Empty>(to(channel_, "Reset", deadline), message);
}

void RemoteMaster::get_variables(const std::string& session, const std::vector<std::string>& names,
                                 const std::function<void(std::size_t, Tensor)>& on_value,
                                 const Deadline& deadline) {
  get_variables_of(to(channel_, "GetVariables", deadline), named(session, names), on_value);
}

void RemoteMaster::set_variables(const std::string& session, const std::vector<std::string>& names,
                                 const std::function<Tensor(std::size_t)>& value, const Deadline& deadline) {
  set_variables_of(to(channel_, "SetVariables", deadline), named(session, names), value);
}

std::vector<bool> RemoteMaster::are_initialized(const std::string& session,
                                                const std::vector<std::string>& names,
                                                const Deadline& deadline) {
  return are_initialized_of(to(channel_, "GetVariables", deadline), named(session, names));
}

std::vector<WrittenShard> RemoteMaster::write_shards(const std::string& session, const ShardPlace& place,
                                                     const std::vector<SavedVariable>& variables,
                                                     const Deadline& deadline) {
  const auto answer = call<def::WriteShardsResponseDef>(to(channel_, "WriteShards", deadline),
                                                        to_def(session, place, {}, variables));
  std::vector<WrittenShard> shards;
  for (const auto& shard : answer.shards()) shards.push_back(from_def(shard, variables.size(), true));
  return shards;
}

void RemoteMaster::read_shards(const std::string& session, const std::vector<SavedVariable>& variables,
                               const Deadline& deadline) {
  call<def::Empty>(to(channel_, "ReadShards", deadline), to_def(session, {}, variables));
}

std::map<std::string, std::uint64_t> RemoteMaster::random_positions(const std::string& session,
                                                                    const Deadline& deadline) {
  return positions_from(
      call<def::RandomPositionsDef>(to(channel_, "RandomPositions", deadline), to_def(session, {}, false)));
}

void RemoteMaster::set_random_positions(const std::string& session,
                                        const std::map<std::string, std::uint64_t>& positions,
                                        const Deadline& deadline) {
  call<def::RandomPositionsDef>(to(channel_, "RandomPositions", deadline), to_def(session, positions, true));
}

std::shared_ptr<Call> RemoteMaster::watch(const std::string& session,
                                          std::function<void(std::exception_ptr)> ended) {
  def::WatchRequestDef message;
  message.set_session(session);
  const auto call = std::make_shared<ClientWatch>(to(channel_, "Watch", {}), std::move(ended));
  call->send(Outgoing::control(message), false);
  call->start();
  return call;
}

}  // namespace kolo::detail
