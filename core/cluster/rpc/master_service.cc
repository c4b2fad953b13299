#include <map>

#include <kolo/core/cluster/rpc/methods_internal.h>
#include <kolo/core/cluster/rpc/shard_messages_internal.h>

namespace kolo::detail {
namespace {

namespace def = kolo::cluster;
using CreateSession = UploadMethod<def::CreateSessionRequestDef>;
using ExtendSession = UploadMethod<def::ExtendSessionRequestDef>;
using RunStep = UploadMethod<def::RunStepRequestDef>;

std::vector<std::string> names_of(const def::VariablesRequestDef& request) {
  std::vector<std::string> names;
  for (const auto& key : request.keys()) names.push_back(checked_name(key.name(), "variable's name"));
  return names;
}

void run_step(const CallHandle& call, RunStep::Upload& upload) {
  const auto& from = upload.request;
  if (from.request_id() != 0) call->shared().request_ids.add(from.request_id());
  const RunStepRequest request{.session = checked_handle(from.session()),
                               .names = from_def(from.names()),
                               .callable = from.callable(),
                               .feeds = std::move(upload.tensors),
                               .trace_level = trace_level_of(from.trace_level()),
                               .metadata = from.metadata(),
                               .request_id = from.request_id()};
  const StepResult result = call->served().master.run_step(request, call->deadline());
  const bool wanted = request.metadata || request.trace_level != TraceLevel::no_trace;
  answer_run(call, result.fetches, wanted ? &result.metadata : nullptr, result.placement_lines);
}

void create_master_session(const CallHandle& call, CreateSession::Upload& upload) {
  const CreatedSession created =
      call->served().master.create_session(uploaded_graph(*call, std::exchange(upload.graph, "")),
                                           from_def(upload.request.config()), call->deadline());
  def::CreateSessionResponseDef response;
  response.set_handle(created.handle);
  response.set_graph_version(created.graph_version);
  response.set_operation_timeout_in_ms(created.operation_timeout_in_ms);
  answer(call, response);
}

void extend_session(const CallHandle& call, ExtendSession::Upload& upload) {
  def::ExtendSessionResponseDef response;
  response.set_version(call->served().master.extend_session(
      checked_handle(upload.request.session()), upload.request.version(),
      uploaded_graph(*call, std::exchange(upload.graph, "")), call->deadline()));
  answer(call, response);
}

MakeMethod run_method() {
  return [] {
    return std::make_unique<RunStep>([](const def::RunStepRequestDef& request) { return request.feeds(); },
                                     run_step, session_check<def::RunStepRequestDef>(&Served::check_session));
  };
}

class MasterWatch final : public Method {
  bool on_control(const CallHandle& call, const std::string& control) override {
    call->handle([call, session = checked_handle(parsed<def::WatchRequestDef>(control).session())] {
      const auto watch = call->served().master.watch(
          session, [call](std::exception_ptr error) { call->finish(std::move(error)); });
      call->send(Outgoing::control(def::Empty()));
      if (watch != nullptr) call->when_stopped([watch] { watch->cancel(); });
    });
    return true;
  }
  bool on_more(const CallHandle& /*call*/, const MessagePieces& /*message*/) override { return true; }
  void on_all_read(const CallHandle& call) override { call->request_stop(); }
  bool waits_for_ever() const override { return true; }
};

const std::map<std::string, MakeMethod, std::less<>>& master_methods() {
  static const VariableCalls variables{
      .get =
          [](const CallHandle& call, const def::VariablesRequestDef& request, const auto& on_value) {
            call->served().master.get_variables(checked_handle(request.session()), names_of(request),
                                                on_value, call->deadline());
          },
      .set =
          [](const CallHandle& call, const def::VariablesRequestDef& request, const auto& value) {
            call->served().master.set_variables(checked_handle(request.session()), names_of(request), value,
                                                call->deadline());
          },
      .are_initialized =
          [](const CallHandle& call, const def::VariablesRequestDef& request) {
            return call->served().master.are_initialized(checked_handle(request.session()), names_of(request),
                                                         call->deadline());
          }};
  static const std::map<std::string, MakeMethod, std::less<>> all{
      {"CreateSession", [] { return std::make_unique<CreateSession>(nullptr, create_master_session); }},
      {"ExtendSession",
       [] {
         return std::make_unique<ExtendSession>(
             nullptr, extend_session, session_check<def::ExtendSessionRequestDef>(&Served::check_session));
       }},
      {"RunStep", run_method()},
      {"RunCallable", run_method()},
      {"MakeCallable", unary<def::MakeCallableRequestDef>(
                           [](const CallHandle& call, const def::MakeCallableRequestDef& from) {
                             def::CallableDef response;
                             response.set_callable(call->served().master.make_callable(
                                 checked_handle(from.session()), from_def(from.names()), call->deadline()));
                             answer(call, response);
                           })},
      {"ReleaseCallable", unary<def::CallableDef>([](const CallHandle& call, const def::CallableDef& from) {
         call->served().master.release_callable(checked_handle(from.session()), from.callable(),
                                                call->deadline());
         answer(call, def::Empty());
       })},
      {"CloseSession",
       unary<def::SessionRequestDef>([](const CallHandle& call, const def::SessionRequestDef& from) {
         call->served().master.close_session(checked_handle(from.session()), call->deadline());
         answer(call, def::Empty());
       })},
      {"ListDevices",
       unary<def::SessionRequestDef>([](const CallHandle& call, const def::SessionRequestDef& from) {
         def::DevicesDef response;
         for (const auto& device :
              call->served().master.list_devices(checked_handle(from.session()), call->deadline()))
           *response.add_devices() = to_def(device);
         answer(call, response);
       })},
      {"Reset",
       unary<def::ContainersRequestDef>([](const CallHandle& call, const def::ContainersRequestDef& from) {
         call->served().master.reset(checked_names(from.containers(), "container's name"),
                                     from_def(from.config()), call->deadline());
         answer(call, def::Empty());
       })},
      {"GetVariables", [] { return get_variables_method(variables); }},
      {"SetVariables", [] { return set_variables_method(variables); }},
      {"WriteShards",
       unary<def::WriteShardRequestDef>([](const CallHandle& call, const def::WriteShardRequestDef& from) {
         def::WriteShardsResponseDef response;
         for (const WrittenShard& shard :
              call->served().master.write_shards(checked_handle(from.session()), place_from(from),
                                                 variables_from(from.variables()), call->deadline()))
           *response.add_shards() = to_def(shard);
         answer(call, response);
       })},
      {"ReadShards",
       unary<def::ReadShardRequestDef>([](const CallHandle& call, const def::ReadShardRequestDef& from) {
         call->served().master.read_shards(checked_handle(from.session()), variables_from(from.variables()),
                                           call->deadline());
         answer(call, def::Empty());
       })},
      {"RandomPositions",
       unary<def::RandomPositionsDef>([](const CallHandle& call, const def::RandomPositionsDef& from) {
         answer_random_positions(call, from, call->served().master);
       })},
      {"Watch", [] { return std::make_unique<MasterWatch>(); }}};
  return all;
}

}  // namespace

std::unique_ptr<Method> master_method(std::string_view name) {
  const auto found = master_methods().find(name);
  return found == master_methods().end() ? nullptr : found->second();
}

}  // namespace kolo::detail
