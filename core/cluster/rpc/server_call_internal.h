// One call that came in: messages each way until this end finishes it.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/kept_threads.h>
#include <kolo/core/cluster/request_ids.h>
#include <kolo/core/cluster/rpc/limits.h>
#include <kolo/core/cluster/rpc/served.h>

#include <kolo/core/cluster/rpc/messages_internal.h>
#include <kolo/core/cluster/rpc/outgoing_internal.h>
#include <kolo/core/cluster/rpc/polled_queue_internal.h>
#include <kolo/core/cluster/rpc/server_stream_internal.h>
#include <kolo/core/cluster/rpc/transport_internal.h>

namespace kolo::detail {

class ServerCall;

/// What a method does with its call. Hooks come one after the other, on the queue's thread; none blocks.
class Method {
 public:
  virtual ~Method() = default;
  /// What it throws ends the call. False: no more is read before ServerCall::read_on().
  virtual bool on_control(const std::shared_ptr<ServerCall>& call, const std::string& control) = 0;
  virtual bool on_more(const std::shared_ptr<ServerCall>& /*call*/, const MessagePieces& /*message*/) {
    throw InvalidArgumentError("more than one message came");
  }
  /// The client has sent all it had to.
  virtual void on_all_read(const std::shared_ptr<ServerCall>& /*call*/) {}
  /// Whether the client may be silent behind its control message for as long as it likes.
  virtual bool waits_for_ever() const { return false; }
};

/// Calls that are not over yet. Adding and removing take the same time however many there are.
class OpenCalls {
 public:
  void add(const std::shared_ptr<ServerCall>& call);
  /// For the caller to drop; null where it is not in it.
  std::shared_ptr<ServerCall> remove(ServerCall& call);
  const std::vector<std::shared_ptr<ServerCall>>& all() const { return calls_; }
  std::size_t size() const { return calls_.size(); }
  std::size_t watches() const { return watches_; }

 private:
  std::vector<std::shared_ptr<ServerCall>> calls_;
  std::size_t watches_ = 0;
};

/// What the calls of one server share.
struct ServerShared {
  explicit ServerShared(RpcServerOptions given) : options(std::move(given)) {}
  /// One log line a minute for what strangers send.
  void note_refused(const std::string& peer, const std::string& why);

  RpcServerOptions options;
  std::shared_ptr<PolledQueue> queue;  // set before the first call
  KeptThreads* threads = nullptr;      // the server's: they end before it does
  std::optional<Served> served;        // set before the first begin()
  RequestIds request_ids;              // of steps that the master has had

  std::atomic<std::int64_t> refused{0};  // calls that the transport is not done with

  Mutex mutex;
  CondVar changed;
  OpenCalls calls KOLO_GUARDED_BY(mutex);
  std::vector<std::shared_ptr<ServerCall>> waiting KOLO_GUARDED_BY(mutex);  // for start()
  int lent KOLO_GUARDED_BY(mutex) = 0;  // values that are being sent, whose owners are not told yet
  bool started KOLO_GUARDED_BY(mutex) = false;
  bool stopping KOLO_GUARDED_BY(mutex) = false;

 private:
  OncePer told_refused_{std::chrono::seconds(60)};
};

/// Any thread.
class ServerCall final : public StreamHooks, public std::enable_shared_from_this<ServerCall> {
 public:
  ServerCall(std::shared_ptr<ServerShared> shared, std::unique_ptr<ServerStream> stream);
  ~ServerCall() override;
  ServerCall(const ServerCall&) = delete;
  ServerCall& operator=(const ServerCall&) = delete;

  /// Checks whom it is for, finds the method, reads. After start() of the server.
  void begin() KOLO_EXCLUDES(mutex_);
  /// Dropped where the call is over.
  void send(Outgoing outgoing) KOLO_EXCLUDES(mutex_);
  /// send() and finish(nullptr) in one: the status goes with the last message, which saves a turn of the
  /// transport's and a packet.
  void send_last(Outgoing outgoing) KOLO_EXCLUDES(mutex_);
  /// Sends and waits until nothing of it is read any more; false when the call is over.
  bool send_and_wait(std::size_t key, const Tensor& value) KOLO_EXCLUDES(mutex_);
  void read_on() KOLO_EXCLUDES(mutex_);
  /// Behind what was sent; with an error at once. The first one counts.
  void finish(std::exception_ptr error) KOLO_EXCLUDES(mutex_);
  /// Sends a value of a step, and finishes with the last one; `released` on a thread that may run it for
  /// long, or within this.
  void lend(std::size_t key, const Tensor& value, std::function<void()> released, bool last)
      KOLO_EXCLUDES(mutex_);
  /// As if the client had gone.
  void cancel() KOLO_EXCLUDES(mutex_);

  /// `work` on a thread that may block; what it throws ends the call.
  void handle(std::function<void()> work);
  /// Requested when the client has gone or cancelled, its deadline is over, or the server stops.
  std::stop_token stop() const { return stop_.get_token(); }
  /// Called then; at once where that was before. Dropped at the call's end.
  void when_stopped(std::function<void()> hook) KOLO_EXCLUDES(mutex_);
  void request_stop() KOLO_EXCLUDES(mutex_);
  /// The client's, with stop().
  const Deadline& deadline() const { return deadline_; }
  ServerShared& shared() const { return *shared_; }
  const Served& served() const { return *shared_->served; }
  std::size_t chunk_bytes() const { return shared_->options.limits.chunk_bytes; }
  const std::string& sender() const { return sender_; }  // a task, or `client`
  const std::string& peer() const { return peer_; }      // its address
  bool is_watch() const { return is_watch_; }
  /// Whether a message that should have come has been waited for longer than the limits allow.
  bool is_stalled(std::chrono::steady_clock::time_point now) const {
    const auto since = silent_since_.load();
    return since != kNotSilent && now - since > shared_->options.limits.stalled_sender;
  }

 private:
  static constexpr std::size_t kNoPlace = ~std::size_t{0};
  static constexpr auto kNotSilent = std::chrono::steady_clock::time_point::max();
  void on_read(bool ok) override KOLO_EXCLUDES(mutex_);
  void on_written(bool ok) override KOLO_EXCLUDES(mutex_);
  void on_cancel() override KOLO_EXCLUDES(mutex_);
  void on_over() override KOLO_EXCLUDES(mutex_);
  void check_destination();
  void advance() KOLO_REQUIRES(mutex_);

  friend class OpenCalls;
  std::size_t place_ = kNoPlace;  // among the open calls; under their mutex
  const std::shared_ptr<ServerShared> shared_;
  std::unique_ptr<ServerStream> stream_;  // until on_over()
  const std::string method_name_;
  const std::string peer_;
  std::string sender_;
  bool is_watch_;
  std::stop_source stop_;
  const Deadline deadline_;  // and stop
  std::unique_ptr<Method> method_;
  bool control_read_ = false;  // hooks alone
  std::string cut_short_;      // why a call is none that ended before all had come; hooks alone
  grpc::ByteBuffer incoming_;  // the transport's, while a read is under way
  std::atomic<std::chrono::steady_clock::time_point> silent_since_ = kNotSilent;

  Mutex mutex_;
  Outgoings queue_ KOLO_GUARDED_BY(mutex_);
  grpc::ByteBuffer outgoing_ KOLO_GUARDED_BY(mutex_);
  bool writing_ KOLO_GUARDED_BY(mutex_) = false;
  bool cancelled_ KOLO_GUARDED_BY(mutex_) = false;
  bool finishing_ KOLO_GUARDED_BY(mutex_) = false;  // nothing more is queued
  bool finished_ KOLO_GUARDED_BY(mutex_) = false;   // no operation may begin any more
  std::exception_ptr error_ KOLO_GUARDED_BY(mutex_);
  bool stopped_ KOLO_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> stop_hooks_ KOLO_GUARDED_BY(mutex_);
};

/// Nothing for a method that there is not.
std::unique_ptr<Method> worker_method(std::string_view name);
std::unique_ptr<Method> master_method(std::string_view name);

/// "" where the call has none such.
std::string header(const grpc::GenericServerContext& context, const char* key);

/// Why the caller may not speak to the server: it shows no or another token, or is of another version. Null
/// where it may.
std::exception_ptr refusal_of(const grpc::GenericServerContext& context, ServerShared& shared);

}  // namespace kolo::detail
