#include <kolo/core/cluster/rpc/methods_internal.h>

namespace kolo::detail {
namespace {

using RunStep = UploadMethod<def::RunStepRequestDef>;

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

Methods master_methods() {
  const auto master = [](const Served& served) -> Master& { return served.master; };
  Methods all = methods_of<Master>(master, &Served::check_session);
  add_variable_methods<Master>(all, master, names_of);
  all["RunStep"] = all["RunCallable"] = run_method();
  all["Watch"] = [] { return std::make_unique<MasterWatch>(); };
  return all;
}

}  // namespace

std::unique_ptr<Method> master_method(std::string_view name) {
  static const Methods methods = master_methods();
  return make_method(methods, name);
}

}  // namespace kolo::detail
