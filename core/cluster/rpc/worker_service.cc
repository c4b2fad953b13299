#include <kolo/core/cluster/rpc/methods_internal.h>

namespace kolo::detail {
namespace {

class WorkerWatch final : public Method {
  bool on_control(const CallHandle& call, const std::string& control) override {
    watcher_ = {.task = call->sender(), .incarnation = parsed<def::WatchRequestDef>(control).incarnation()};
    tell(call, WatcherEvent::connected);
    call->handle([call] { call->send(Outgoing::control(call->served().worker.call<GetStatus>({}, {}))); });
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

Methods worker_methods() {
  const VariableCalls variables{
      .get =
          [](const CallHandle& call, const def::VariablesRequestDef& request, const auto& on_value) {
            call->served().worker.get_variables(checked_handle(request.session()), keys_of(request), on_value,
                                                call->deadline());
          },
      .set =
          [](const CallHandle& call, const def::VariablesRequestDef& request, const auto& value) {
            call->served().worker.set_variables(checked_handle(request.session()), keys_of(request), value,
                                                call->deadline());
          }};
  Methods all = methods_of<Worker>([](const Served& served) -> Worker& { return served.worker; },
                                   &Served::check_worker_session);
  all["RunGraph"] = run_graph_method;
  all["RecvTensors"] = recv_tensors_method;
  all["GetVariables"] = [variables] { return get_variables_method(variables); };
  all["SetVariables"] = [variables] { return set_variables_method(variables); };
  all["Watch"] = [] { return std::make_unique<WorkerWatch>(); };
  return all;
}

}  // namespace

std::unique_ptr<Method> worker_method(std::string_view name) {
  static const Methods methods = worker_methods();
  return make_method(methods, name);
}

}  // namespace kolo::detail
