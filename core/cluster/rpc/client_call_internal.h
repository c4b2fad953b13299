// One call to another process: messages each way until a status ends it.
#pragma once

#include <exception>
#include <memory>
#include <string>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/call.h>
#include <kolo/core/cluster/rpc/caller.h>

#include <kolo/core/cluster/rpc/outgoing_internal.h>
#include <kolo/core/cluster/rpc/polled_queue_internal.h>

namespace kolo::detail {

class RpcChannel {
 public:
  RpcChannel(std::string address, Caller caller);
  const std::string& address() const { return address_; }
  const Caller& caller() const { return caller_; }
  const RpcLimits& limits() const { return caller_.limits; }
  /// For one call. Where the last attempt to connect has failed, on a transport that tries anew: a peer that
  /// is back is reached at once, not when the back-off is over.
  std::shared_ptr<grpc::Channel> transport() KOLO_EXCLUDES(mutex_);

 private:
  std::string address_;
  Caller caller_;  // limits are resolved
  Mutex mutex_;
  std::shared_ptr<grpc::Channel> transport_ KOLO_GUARDED_BY(mutex_);
};

/// What a client's hook wants after a message.
enum class Next {
  read,
  pause,  // no reading before read_on()
  none,   // that was the last one: only the status is missing
};

/// Owns itself from start() to its end. Any thread; hooks come one after the other, on the queue's thread.
class ClientCall : public Call, public std::enable_shared_from_this<ClientCall> {
 public:
  /// method: with its service. task: whom the caller means, "" for a master.
  ClientCall(std::shared_ptr<RpcChannel> channel, std::string method, const std::string& task,
             const Deadline& deadline);
  ~ClientCall() override;

  /// last: nothing more will be sent. Before start(), too. After the call's end: dropped.
  void send(Outgoing outgoing, bool last) KOLO_EXCLUDES(mutex_);
  /// reads: else none before read_on().
  void start(bool reads = true) KOLO_EXCLUDES(mutex_);
  /// Instead of start(): the one message that was given, which is a control message, and one back, for which
  /// the transport takes fewer turns. on_message() answers Next::none.
  void start_unary() KOLO_EXCLUDES(mutex_);
  void cancel() override KOLO_EXCLUDES(mutex_);

 protected:
  /// What it throws ends the call as its error.
  virtual Next on_message(const MessagePieces& message) = 0;
  /// Last and once. error: null for a status of OK.
  virtual void on_end(std::exception_ptr error) = 0;

  void read_on() KOLO_EXCLUDES(mutex_);
  /// Cancels it, to end it with `error`.
  void fail(std::exception_ptr error) KOLO_EXCLUDES(mutex_);
  const RpcChannel& channel() const { return *channel_; }

 private:
  void was_greeted(bool ok) KOLO_EXCLUDES(mutex_);
  void was_read(bool ok) KOLO_EXCLUDES(mutex_);
  void was_written(bool ok) KOLO_EXCLUDES(mutex_);
  void was_answered(bool ok) KOLO_EXCLUDES(mutex_);
  void was_finished(bool ok) KOLO_EXCLUDES(mutex_);
  void read_next() KOLO_REQUIRES(mutex_);
  void write_next() KOLO_REQUIRES(mutex_);
  void finish_if_last() KOLO_REQUIRES(mutex_);

  const std::shared_ptr<RpcChannel> channel_;
  const std::shared_ptr<grpc::Channel> transport_;
  const std::string method_;
  std::shared_ptr<PolledQueue> polled_;                            // from start() on
  std::unique_ptr<grpc::ClientContext> context_;                   // until was_finished(), as the next two
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;   // from start() on
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> unary_;  // from start_unary() on
  grpc::ByteBuffer incoming_;  // the transport's, while a read is under way
  grpc::Status status_;        // the transport's, while the last operation is under way
  CompletionOf<ClientCall> started_{*this, &ClientCall::was_greeted};
  CompletionOf<ClientCall> greeted_{*this, &ClientCall::was_greeted};
  CompletionOf<ClientCall> read_{*this, &ClientCall::was_read};
  CompletionOf<ClientCall> written_{*this, &ClientCall::was_written};
  CompletionOf<ClientCall> answered_{*this, &ClientCall::was_answered};
  CompletionOf<ClientCall> finished_{*this, &ClientCall::was_finished};

  Mutex mutex_;
  Outgoings queue_ KOLO_GUARDED_BY(mutex_);
  grpc::ByteBuffer outgoing_ KOLO_GUARDED_BY(mutex_);
  bool last_given_ KOLO_GUARDED_BY(mutex_) = false;
  bool has_started_ KOLO_GUARDED_BY(mutex_) = false;
  int greetings_ KOLO_GUARDED_BY(mutex_) = 0;        // to come before anything is written or read
  bool wants_read_ KOLO_GUARDED_BY(mutex_) = false;  // once that may be
  bool finishing_ KOLO_GUARDED_BY(mutex_) = false;
  bool writing_ KOLO_GUARDED_BY(mutex_) = false;
  bool reads_over_ KOLO_GUARDED_BY(mutex_) = false;  // no operation may begin any more
  bool cancelled_ KOLO_GUARDED_BY(mutex_) = false;
  bool over_ KOLO_GUARDED_BY(mutex_) = false;
  std::exception_ptr own_error_ KOLO_GUARDED_BY(mutex_);
  std::shared_ptr<ClientCall> self_;  // from start() to was_finished()
};

}  // namespace kolo::detail
