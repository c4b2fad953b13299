#include <algorithm>

#include <fmt/format.h>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/rpc/channel.h>

#include <kolo/core/cluster/rpc/remote_call_internal.h>
#include <kolo/core/cluster/rpc/transport_internal.h>

namespace kolo::detail {
namespace {

// The master takes the time off again: whom it waited for only it knows.
BlockingCall::To to(const std::shared_ptr<RpcChannel>& channel, std::string_view method,
                    const Deadline& deadline) {
  return {.channel = channel,
          .task = "",
          .method = fmt::format("{}{}", kMasterService, method),
          .deadline = deadline.shifted(kAnswerTime)};
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

void RemoteMaster::on_call(std::string_view method, const Message& request, GraphDef* graph, Message& answer,
                           const Deadline& deadline) {
  call_for(to(channel_, method, deadline), request, graph, answer);
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

void RemoteMaster::get_variables(const std::string& session, const std::vector<std::string>& names,
                                 const std::function<void(std::size_t, Tensor)>& on_value,
                                 const Deadline& deadline) {
  get_variables_of(to(channel_, "GetVariables", deadline), to_def(session, names), on_value);
}

void RemoteMaster::set_variables(const std::string& session, const std::vector<std::string>& names,
                                 const std::function<Tensor(std::size_t)>& value, const Deadline& deadline) {
  set_variables_of(to(channel_, "SetVariables", deadline), to_def(session, names), value);
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
