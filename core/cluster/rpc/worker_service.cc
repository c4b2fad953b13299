#include <map>

#include <kolo/core/cluster/rpc/methods_internal.h>
#include <kolo/core/cluster/rpc/shard_messages_internal.h>

namespace kolo::detail {
namespace {

namespace def = kolo::cluster;

class WorkerWatch final : public Method {
  bool on_control(const CallHandle& call, const std::string& control) override {
    watcher_ = {.task = call->sender(), .incarnation = parsed<def::WatchRequestDef>(control).incarnation()};
    tell(call, WatcherEvent::connected);
    call->handle([call] { call->send(Outgoing::control(to_def(call->served().worker.status({})))); });
    return true;
  }
  bool on_more(const CallHandle& call, const MessagePieces& message) override {
    if (!parsed<def::WatchRequestDef>(message.joined()).stopping() || std::exchange(told_end_, true))
      return true;
    tell(call, WatcherEvent::stopping);
    return true;
  }
  void on_all_read(const CallHandle& call) override {
    if (!std::exchange(told_end_, true)) tell(call, WatcherEvent::lost);
    call->finish(nullptr);
  }
  bool waits_for_ever() const override { return true; }
  void tell(const CallHandle& call, WatcherEvent event) const {
    if (call->served().on_watcher) call->served().on_watcher(watcher_, event);
  }

  TaskProcess watcher_;
  bool told_end_ = false;
};

const std::map<std::string, MakeMethod, std::less<>>& worker_methods() {
  static const VariableCalls variables{
      .get =
          [](const CallHandle& call, const def::VariablesRequestDef& request, const auto& on_value) {
            call->served().worker.get_variables(checked_handle(request.session()), keys_of(request), on_value,
                                                call->deadline());
          },
      .set =
          [](const CallHandle& call, const def::VariablesRequestDef& request, const auto& value) {
            call->served().worker.set_variables(checked_handle(request.session()), keys_of(request), value,
                                                call->deadline());
          },
      .are_initialized =
          [](const CallHandle& call, const def::VariablesRequestDef& request) {
            return call->served().worker.are_initialized(checked_handle(request.session()), keys_of(request),
                                                         call->deadline());
          }};
  using RegisterGraph = UploadMethod<def::RegisterGraphRequestDef>;
  static const std::map<std::string, MakeMethod, std::less<>> all{
      {"GetStatus", unary<def::Empty>([](const CallHandle& call, const def::Empty&) {
         answer(call, to_def(call->served().worker.status(call->deadline())));
       })},
      {"CreateWorkerSession", unary<def::WorkerSessionRequestDef>(
                                  [](const CallHandle& call, const def::WorkerSessionRequestDef& from) {
                                    const std::string session = checked_handle(from.session());
                                    call->served().worker.create_session(
                                        {.session = session,
                                         .master = checked_name(from.master(), "task"),
                                         .config = from_def(from.config()),
                                         .master_incarnation = from.master_incarnation()},
                                        call->deadline());
                                    // Its master has given up.
                                    if (call->stop().stop_requested())
                                      call->served().worker.delete_session(session, {});
                                    answer(call, def::Empty());
                                  })},
      {"DeleteWorkerSession",
       unary<def::SessionRequestDef>([](const CallHandle& call, const def::SessionRequestDef& from) {
         call->served().worker.delete_session(checked_handle(from.session()), call->deadline());
         answer(call, def::Empty());
       })},
      {"RegisterGraph",
       [] {
         return std::make_unique<RegisterGraph>(
             nullptr,
             [](const CallHandle& call, RegisterGraph::Upload& upload) {
               const auto& from = upload.request;
               def::RegisterGraphResponseDef response;
               const std::string session = checked_handle(from.session());
               response.set_part(call->served().worker.register_part(
                   {.session = session,
                    .graph = uploaded_graph(*call, std::exchange(upload.graph, "")),
                    .feeds = checked_names(from.feeds(), "feed's name"),
                    .fetches = checked_names(from.fetches(), "fetch's name"),
                    .targets = checked_names(from.targets(), "target's name")},
                   call->deadline()));
               // Its master has given up, and knows no handle to drop it by.
               if (call->stop().stop_requested())
                 call->served().worker.deregister_part(session, response.part(), {});
               answer(call, response);
             },
             session_check<def::RegisterGraphRequestDef>(&Served::check_worker_session));
       }},
      {"DeregisterGraph", unary<def::DeregisterGraphRequestDef>(
                              [](const CallHandle& call, const def::DeregisterGraphRequestDef& from) {
                                call->served().worker.deregister_part(checked_handle(from.session()),
                                                                      from.part(), call->deadline());
                                answer(call, def::Empty());
                              })},
      {"RunGraph", run_graph_method},
      {"RecvTensors", recv_tensors_method},
      {"CleanupAll",
       unary<def::ContainersRequestDef>([](const CallHandle& call, const def::ContainersRequestDef& from) {
         call->served().worker.cleanup_containers(checked_names(from.containers(), "container's name"),
                                                  call->deadline());
         answer(call, def::Empty());
       })},
      {"GetVariables", [] { return get_variables_method(variables); }},
      {"SetVariables", [] { return set_variables_method(variables); }},
      {"WriteShard",
       unary<def::WriteShardRequestDef>([](const CallHandle& call, const def::WriteShardRequestDef& from) {
         answer(call, to_def(call->served().worker.write_shard(
                          checked_handle(from.session()), place_from(from), keys_from(from.variables()),
                          variables_from(from.variables()), call->deadline())));
       })},
      {"ReadShard",
       unary<def::ReadShardRequestDef>([](const CallHandle& call, const def::ReadShardRequestDef& from) {
         call->served().worker.read_shard(checked_handle(from.session()), keys_from(from.variables()),
                                          variables_from(from.variables()), call->deadline());
         answer(call, def::Empty());
       })},
      {"RandomPositions",
       unary<def::RandomPositionsDef>([](const CallHandle& call, const def::RandomPositionsDef& from) {
         answer_random_positions(call, from, call->served().worker);
       })},
      {"Watch", [] { return std::make_unique<WorkerWatch>(); }}};
  return all;
}

}  // namespace

std::unique_ptr<Method> worker_method(std::string_view name) {
  const auto found = worker_methods().find(name);
  return found == worker_methods().end() ? nullptr : found->second();
}

}  // namespace kolo::detail
