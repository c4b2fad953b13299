#include <atomic>
#include <utility>

#include <kolo/core/cluster/rpc/methods_internal.h>
#include <kolo/core/cluster/rpc/step_streams_internal.h>

namespace kolo::detail {
namespace {

// Values of a step, on their way to the task that has called.
class Sink : public TensorSink {
 public:
  Sink(CallHandle call, std::size_t keys, bool ends_the_call)
      : call_(std::move(call)), last_(ends_the_call ? keys : 0) {}
  void put(std::size_t key, const Tensor& value, bool dead, std::function<void()> released) override {
    // All others are on their way: the status goes with this one. Of two that come at once neither knows, and
    // end() finishes.
    const bool last = sent_ + 1 == last_;
    if (!dead) {
      call_->lend(key, value, std::move(released), last);
    } else {
      if (last) call_->send_last(Outgoing::dead(key));
      else call_->send(Outgoing::dead(key));
      released();
    }
    ++sent_;
  }
  void end(std::exception_ptr error) override { call_->finish(std::move(error)); }

 protected:
  ServerCall& call() { return *call_; }

 private:
  const CallHandle call_;
  const std::size_t last_;  // 0: none is
  std::atomic<std::size_t> sent_ = 0;
};

// Those that ride on the call that runs the part: its result ends it.
class RidingSink final : public Sink {
 public:
  RidingSink(CallHandle call, std::size_t keys) : Sink(std::move(call), keys, false) {}
  void end(std::exception_ptr error) override {
    if (error == nullptr || is_consequence(error)) return;  // the part tells what it follows from
    call().finish(std::move(error));
    call().request_stop();
  }
};

class RunGraph final : public Method {
 public:
  ~RunGraph() override {
    if (values_ == nullptr) return;
    streams_->remove(name_);
    values_->end(std::make_exception_ptr(ConsequenceError(Code::cancelled, "the step is over")));
  }

 private:
  bool on_control(const CallHandle& call, const std::string& control) override {
    const auto from = parsed<def::RunGraphRequestDef>(control);
    if (static_cast<std::size_t>(from.over_size()) > kMostStepsOver)
      throw InvalidArgumentError("{} steps are said to be over; at most {} may be", from.over_size(),
                                 kMostStepsOver);
    const RunPartRequest request{.session = checked_handle(from.session()),
                                 .part = from.part(),
                                 .step = from.step(),
                                 .request_id = from.request_id(),
                                 .taken = checked_names(from.taken(), "key"),
                                 .given = checked_names(from.given(), "key"),
                                 .trace_level = trace_level_of(from.trace_level()),
                                 .metadata = from.metadata(),
                                 .over = {from.over().begin(), from.over().end()}};
    if (!request.given.empty()) take(call, request);
    if (!request.taken.empty()) give(call, request);
    run(call, request);
    return false;
  }

  // They are read as soon as the part has taken its place as their receiver.
  void take(const CallHandle& call, const RunPartRequest& request) {
    streams_ = call->served().streams;
    if (streams_ == nullptr) throw InvalidArgumentError("more than one message was announced");
    const auto values =
        std::make_shared<IncomingValues>(request.given, call->sender(), call->shared().options.limits);
    name_ = {request.session, request.step, call->sender()};
    streams_->add(name_, {.values = values, .read = [weak = std::weak_ptr(call)] {
                            if (const auto caller = weak.lock()) caller->read_on();
                          }});
    values_ = values;
  }

  static void give(const CallHandle& call, const RunPartRequest& request) {
    const auto served = call->served().tensors.serve(
        {.session = request.session, .step = request.step, .receiver = call->sender(), .keys = request.taken},
        std::make_shared<RidingSink>(call, request.taken.size()));
    if (served != nullptr) call->when_stopped([served] { served->cancel(); });
  }

  static void run(const CallHandle& call, const RunPartRequest& request) {
    // Metadata also has the times that a trace level asks for.
    const bool wanted = request.metadata || request.trace_level != TraceLevel::no_trace;
    const auto part = call->served().worker.run_part(
        request, call->deadline(), [call, wanted](std::exception_ptr error, PartResult result) {
          if (error != nullptr) return call->finish(std::move(error));
          answer_run(call, result.fetches, wanted ? &result.metadata : nullptr, {});
        });
    if (part != nullptr) call->when_stopped([part] { part->cancel(); });
  }

  bool on_more(const CallHandle& /*call*/, const MessagePieces& message) override {
    if (values_ == nullptr) throw InvalidArgumentError("more than one message came");
    values_->read(message);
    return !values_->complete();
  }
  void on_all_read(const CallHandle& /*call*/) override {
    if (values_ != nullptr && !values_->complete())
      throw InvalidArgumentError("a call ended before all that it announced had come");
  }
  bool waits_for_ever() const override { return true; }  // values come when they are made

  std::shared_ptr<StepStreams> streams_;
  StepStreams::Name name_;
  std::shared_ptr<IncomingValues> values_;  // null where none come
};

class RecvTensors final : public Method {
  bool on_control(const CallHandle& call, const std::string& control) override {
    const auto from = parsed<def::RecvTensorsRequestDef>(control);
    const TensorsRequest request{.session = checked_handle(from.session()),
                                 .step = from.step(),
                                 .receiver = checked_name(from.receiver(), "task"),
                                 .keys = checked_names(from.keys(), "key")};
    const auto served = call->served().tensors.serve(
        request, std::make_shared<Sink>(call, request.keys.size(), /*ends_the_call=*/true));
    if (served != nullptr) call->when_stopped([served] { served->cancel(); });
    return false;
  }
};

}  // namespace

std::unique_ptr<Method> run_graph_method() { return std::make_unique<RunGraph>(); }
std::unique_ptr<Method> recv_tensors_method() { return std::make_unique<RecvTensors>(); }

}  // namespace kolo::detail
