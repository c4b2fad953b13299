// Calls of RemoteWorker and RemoteMaster: a response put together, and the thread that waits for it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/cluster/rpc/client_call_internal.h>
#include <kolo/core/cluster/rpc/messages_internal.h>

namespace kolo::detail {

/// What the other end sends back: a control message, where the call has one, then payloads.
class Response final : public PayloadTarget {
 public:
  /// tensors: how many there may be at most.
  Response(bool has_control, std::size_t tensors, const RpcLimits& limits);
  void read(const MessagePieces& message);
  /// Of a step without fetches and metadata the control message is all there is.
  bool is_only_control() const;
  /// Throws DataLossError where the stream ended within a payload or before the control message.
  void check_complete() const;

  std::string control;
  std::vector<Tensor> tensors;  // by key; empty where none came
  std::string metadata;
  std::optional<std::pair<std::size_t, Tensor>> latest;  // the last one that came, absent ones too

 private:
  Tensor memory_for(std::size_t key, DType dtype, const Shape& shape) override;
  void on_tensor(std::size_t key, Tensor value, bool dead, bool absent) override;
  void on_bytes(PayloadKind kind, std::string bytes) override;

  const std::size_t most_;
  bool wants_control_;
  PayloadReader reader_;
};

/// fetches, metadata and placement lines of a step or part.
struct RunResponse {
  std::vector<Tensor> fetches;
  RunMetadata metadata;
  std::vector<std::string> placement_lines;
};
RunResponse run_response(Response& response, std::size_t fetches);

/// A call whose caller waits. The stop of its deadline cancels it.
class BlockingCall final : public ClientCall {
 public:
  struct To {
    std::shared_ptr<RpcChannel> channel;
    std::string task;  // "": a master
    std::string method;
    Deadline deadline;
  };
  /// Without tensors the response is one message.
  BlockingCall(const To& to, bool has_control, std::size_t tensors, bool one_by_one);

  /// Waits for the call's end; throws its error. The response is complete then.
  Response& end() KOLO_EXCLUDES(wait_mutex_);
  /// With one_by_one: the next tensor of the response; nothing at the call's end, whose error end() throws.
  std::optional<std::pair<std::size_t, Tensor>> next() KOLO_EXCLUDES(wait_mutex_);
  /// Waits until the value's memory is not read any more, or the call is over: then false.
  bool send_tensor(std::size_t key, const Tensor& value, bool last) KOLO_EXCLUDES(wait_mutex_);
  /// Cancels it; nobody calls next() any more.
  void abandon() KOLO_EXCLUDES(wait_mutex_);

 private:
  void let_go_of_tensor() KOLO_EXCLUDES(wait_mutex_);
  Next on_message(const MessagePieces& message) override;
  void on_end(std::exception_ptr error) override;

  Response response_;
  const bool one_by_one_;
  const bool one_message_;
  Mutex wait_mutex_;
  CondVar changed_;
  bool over_ KOLO_GUARDED_BY(wait_mutex_) = false;
  bool sending_ KOLO_GUARDED_BY(wait_mutex_) = false;
  bool paused_ KOLO_GUARDED_BY(wait_mutex_) = false;
  bool abandoned_ KOLO_GUARDED_BY(wait_mutex_) = false;
  std::optional<std::pair<std::size_t, Tensor>> ready_ KOLO_GUARDED_BY(wait_mutex_);
  std::exception_ptr error_ KOLO_GUARDED_BY(wait_mutex_);
  const std::stop_callback<std::function<void()>> on_stop_;
};

/// A row of calls.h. graph: follows the message. Null: none.
void call_for(const BlockingCall::To& to, const google::protobuf::MessageLite& request, const GraphDef* graph,
              google::protobuf::MessageLite& answer);

// Of both services.
void get_variables_of(const BlockingCall::To& to, const kolo::cluster::VariablesRequestDef& request,
                      const std::function<void(std::size_t, Tensor)>& on_value);
void set_variables_of(const BlockingCall::To& to, const kolo::cluster::VariablesRequestDef& request,
                      const std::function<Tensor(std::size_t)>& value);

}  // namespace kolo::detail
