// How methods take their requests and give their answers: forms that several share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>

#include <kolo/core/cluster/rpc/server_call_internal.h>

namespace kolo::detail {

using CallHandle = std::shared_ptr<ServerCall>;

inline void answer(const CallHandle& call, const google::protobuf::MessageLite& message) {
  call->send_last(Outgoing::control(message));
}

/// One message there, one back.
template <typename Request>
class UnaryMethod final : public Method {
 public:
  using Serve =
      std::function<void(const CallHandle& call, const Request& request)>;  // on a thread that may block
  explicit UnaryMethod(Serve serve) : serve_(std::move(serve)) {}

 private:
  bool on_control(const CallHandle& call, const std::string& control) override {
    call->handle([serve = serve_, call, request = parsed<Request>(control)] { serve(call, request); });
    return false;
  }

  Serve serve_;
};

using MakeMethod = std::function<std::unique_ptr<Method>()>;

/// One message and payloads there; served when all have come.
template <typename Request>
class UploadMethod final : public Method, public PayloadTarget {
 public:
  struct Upload {
    Request request;
    std::vector<Tensor> tensors;
    std::string graph;
  };
  using Serve = std::function<void(const CallHandle& call, Upload& upload)>;  // on a thread that may block
  using Count = std::function<std::size_t(const Request& request)>;
  using Check = std::function<void(const CallHandle& call, const Request& request)>;  // must not block
  /// tensors: how many come; null: a graph comes. check: throws, before anything that follows takes memory.
  UploadMethod(Count tensors, Serve serve, Check check = nullptr)
      : count_(std::move(tensors)), serve_(std::move(serve)), check_(std::move(check)) {}

 private:
  static constexpr std::size_t kMostTensors = 65536;

  bool on_control(const CallHandle& call, const std::string& control) override {
    upload_.request = parsed<Request>(control);
    if (check_) check_(call, upload_.request);
    reader_ =
        std::make_unique<PayloadReader>(*this, call->shared().options.limits, PayloadReader::Tensors::kept);
    missing_ = count_ ? count_(upload_.request) : 1;
    if (missing_ > kMostTensors)
      throw ResourceExhaustedError("a call is limited to {} tensors; {} were announced", kMostTensors,
                                   missing_);
    if (count_) upload_.tensors.resize(missing_);
    serve_when_complete(call);
    return !served_;  // each read costs a turn of the transport's
  }
  bool on_more(const CallHandle& call, const MessagePieces& message) override {
    reader_->read(message.pieces());
    serve_when_complete(call);
    return !served_;
  }
  void on_all_read(const CallHandle& /*call*/) override {
    if (!served_) throw InvalidArgumentError("a call ended before all that it announced had come");
  }
  void serve_when_complete(const CallHandle& call) {
    if (missing_ > 0) return;
    served_ = true;
    call->handle([serve = serve_, call, upload = std::make_shared<Upload>(std::move(upload_))] {
      serve(call, *upload);
    });
  }
  Tensor memory_for(std::size_t key, DType dtype, const Shape& shape) override {
    check_key(key);
    return Tensor(dtype, shape);
  }
  void on_tensor(std::size_t key, Tensor value, bool /*dead*/, bool /*absent*/) override {
    check_key(key);
    if (!value) throw InvalidArgumentError("value {} came without one", key);
    upload_.tensors[key] = std::move(value);
    --missing_;
  }
  void on_bytes(PayloadKind kind, std::string bytes) override {
    if (count_ || kind != PayloadKind::graph)
      throw InvalidArgumentError("other bytes came than were announced");
    upload_.graph = std::move(bytes);
    --missing_;
  }
  void check_key(std::size_t key) const {
    if (key >= upload_.tensors.size())
      throw InvalidArgumentError("value {} of {} came", key, upload_.tensors.size());
    if (upload_.tensors[key]) throw InvalidArgumentError("value {} came twice", key);
  }

  Count count_;
  Serve serve_;
  Check check_;
  Upload upload_;
  std::unique_ptr<PayloadReader> reader_;
  std::size_t missing_ = 0;
  bool served_ = false;
};

/// Throws for a session that is not there: one of Served. Must not block.
using SessionCheck = std::function<void(const std::string& session)> Served::*;
template <typename Request>
typename UploadMethod<Request>::Check session_check(SessionCheck known) {
  return [known](const CallHandle& call, const Request& request) {
    if (const auto& check = call->served().*known) check(checked_handle(request.session()));
  };
}

/// The graph of an upload. Throws InvalidArgumentError for what is none.
GraphDef uploaded_graph(const ServerCall& call, const std::string& bytes);

/// By the name of the method.
using Methods = std::map<std::string, MakeMethod, std::less<>>;
inline std::unique_ptr<Method> make_method(const Methods& methods, std::string_view name) {
  const auto found = methods.find(name);
  return found == methods.end() ? nullptr : found->second();
}

/// A row of calls.h. callee: Master or Worker of what is served, which answers it.
template <typename Row, typename Callee>
MakeMethod method_of(Callee& (*callee)(const Served& served), SessionCheck known) {
  using Request = typename Row::Request;
  constexpr bool kOfSession = requires(const Request& request) { request.session(); };
  if constexpr (Row::kSendsGraph) {
    using Uploading = UploadMethod<Request>;
    typename Uploading::Check check;
    if constexpr (kOfSession) check = session_check<Request>(known);
    return [callee, check] {
      const auto serve = [callee](const CallHandle& call, typename Uploading::Upload& upload) {
        if constexpr (kOfSession) checked_handle(upload.request.session());
        answer(call,
               callee(call->served())
                   .template call<Row>(upload.request, uploaded_graph(*call, std::exchange(upload.graph, "")),
                                       call->deadline()));
      };
      return std::make_unique<Uploading>(nullptr, serve, check);
    };
  } else {
    return [callee] {
      return std::make_unique<UnaryMethod<Request>>([callee](const CallHandle& call, const Request& request) {
        if constexpr (kOfSession) checked_handle(request.session());
        answer(call, callee(call->served()).template call<Row>(request, call->deadline()));
      });
    };
  }
}

/// All rows of `Callee`.
template <typename Callee>
Methods methods_of(Callee& (*callee)(const Served& served), SessionCheck known) {
  Methods methods;
  Callee::for_each_row([&]<typename Row>(Row) { methods[Row::kMethod] = method_of<Row>(callee, known); });
  return methods;
}

/// Results of a step: the control message, metadata, the fetches.
void answer_run(const CallHandle& call, const std::vector<Tensor>& fetches, const RunMetadata* metadata,
                const std::vector<std::string>& placement_lines);

/// The part of a step, and values that it makes for other tasks.
std::unique_ptr<Method> run_graph_method();
std::unique_ptr<Method> recv_tensors_method();

/// How a service gets and sets variables.
struct VariableCalls {
  std::function<void(const CallHandle&, const def::VariablesRequestDef&,
                     const std::function<void(std::size_t, Tensor)>& on_value)>
      get;
  std::function<void(const CallHandle&, const def::VariablesRequestDef&,
                     const std::function<Tensor(std::size_t)>& value)>
      set;
};
void add_variable_methods(Methods& methods, const VariableCalls& calls);
/// GetVariables and SetVariables. variables_of(request): the names, or keys, that `callee` takes.
template <typename Callee, typename Variables>
void add_variable_methods(Methods& methods, Callee& (*callee)(const Served& served),
                          Variables (*variables_of)(const def::VariablesRequestDef& request)) {
  const auto ask = [=](const auto& method) {
    return [=](const CallHandle& call, const def::VariablesRequestDef& request, const auto& values) {
      (callee(call->served()).*method)(checked_handle(request.session()), variables_of(request), values,
                                       call->deadline());
    };
  };
  add_variable_methods(methods, {.get = ask(&Callee::get_variables), .set = ask(&Callee::set_variables)});
}

}  // namespace kolo::detail
