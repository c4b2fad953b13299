// The calls by which values of a step come: the client's ends of RunGraph and RecvTensors.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <kolo/core/cluster/rpc/remote_call_internal.h>
#include <kolo/core/cluster/rpc/step_streams_internal.h>

namespace kolo::detail {

/// A part that another task runs. With it go the values that this task gives for it; before its result come
/// those that this task takes.
class PartCall final : public ClientCall {
 public:
  using Done = std::function<void(std::exception_ptr error, PartResult result)>;

  /// streams: null where no values ride on the call.
  static std::shared_ptr<PartCall> start(const BlockingCall::To& to, const RunPartRequest& request,
                                         std::shared_ptr<StepStreams> streams, Done done);
  PartCall(const BlockingCall::To& to, const RunPartRequest& request, std::shared_ptr<StepStreams> streams,
           Done done);
  void cancel() override;

 private:
  class Sink;

  void send_request(const RunPartRequest& request);
  void give(const RunPartRequest& request) KOLO_EXCLUDES(giving_mutex_);
  void begin_reading();
  Next on_message(const MessagePieces& message) override;
  void on_end(std::exception_ptr error) override KOLO_EXCLUDES(giving_mutex_);
  bool takes() const { return taken_ != nullptr; }

  const std::string task_;
  const std::shared_ptr<StepStreams> streams_;
  const std::size_t gives_;                      // values
  const std::shared_ptr<IncomingValues> taken_;  // null without any
  const StepStreams::Name name_;
  Done done_;
  Response response_;
  bool response_begun_ = false;
  std::atomic<bool> reading_;
  Mutex giving_mutex_;
  std::shared_ptr<Call> giving_ KOLO_GUARDED_BY(giving_mutex_);
  bool over_ KOLO_GUARDED_BY(giving_mutex_) = false;
};

/// Values that a task is asked for.
class ReceiveCall final : public ClientCall {
 public:
  ReceiveCall(const BlockingCall::To& to, const TensorsRequest& request,
              std::shared_ptr<TensorReceiver> receiver);

 private:
  Next on_message(const MessagePieces& message) override {
    values_.read(message);
    return Next::read;
  }
  void on_end(std::exception_ptr error) override { values_.end(std::move(error)); }

  IncomingValues values_;
};

}  // namespace kolo::detail
