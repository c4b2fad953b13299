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
  const auto worker = [](const Served& served) -> Worker& { return served.worker; };
  Methods all = methods_of<Worker>(worker, &Served::check_worker_session);
  add_variable_methods<Worker>(all, worker, keys_of);
  all["RunGraph"] = run_graph_method;
  all["RecvTensors"] = recv_tensors_method;
  all["Watch"] = [] { return std::make_unique<WorkerWatch>(); };
  return all;
}

}  // namespace

std::unique_ptr<Method> worker_method(std::string_view name) {
  static const Methods methods = worker_methods();
  return make_method(methods, name);
}

}  // namespace kolo::detail
