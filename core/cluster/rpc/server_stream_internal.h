// gRPC's side of one call that comes in.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/byte_buffer.h>

#include <kolo/core/cluster/rpc/polled_queue_internal.h>

namespace kolo::detail {

/// What is done with such a call. On the queue's thread, one after the other; none blocks.
class StreamHooks {
 public:
  virtual ~StreamHooks() = default;
  /// of read(). False: no more comes.
  virtual void on_read(bool ok) = 0;
  /// of write(). False: nothing more goes.
  virtual void on_written(bool ok) = 0;
  /// The client has gone or cancelled.
  virtual void on_cancel() = 0;
  /// Last, behind finish() or write_and_finish(). May destroy the stream.
  virtual void on_over() = 0;
};

/// At most one read and one write are under way at a time, and nothing begins behind finish(), which each
/// call needs. Any thread.
class ServerStream {
 public:
  using Arrived = std::function<void(std::unique_ptr<ServerStream> stream)>;
  /// Waits for the next call. arrived: on the queue's thread, with null where the server shuts down.
  static void await(grpc::AsyncGenericService& service, PolledQueue& queue, Arrived arrived);

  grpc::GenericServerContext& context() { return context_; }
  /// Before anything else is begun.
  void set_hooks(StreamHooks& hooks) { hooks_ = &hooks; }
  void send_initial_metadata() { stream_.SendInitialMetadata(begin(greeted_)); }
  void read(grpc::ByteBuffer* to) { stream_.Read(to, begin(read_)); }
  void write(const grpc::ByteBuffer& message) { stream_.Write(message, begin(written_)); }
  void finish(const grpc::Status& status) { stream_.Finish(status, finished_.tag()); }
  void write_and_finish(const grpc::ByteBuffer& message, const grpc::Status& status) {
    stream_.WriteAndFinish(message, grpc::WriteOptions(), status, finished_.tag());
  }

 private:
  explicit ServerStream(Arrived hook) : arrived_hook_(std::move(hook)) {
    context_.AsyncNotifyWhenDone(closed_.tag());
  }
  void* begin(Completion& completion) {
    ++under_way_;
    return completion.tag();
  }
  void has_arrived(bool ok);
  void was_greeted(bool ok);
  void was_read(bool ok);
  void was_written(bool ok);
  void was_finished(bool ok);
  void was_closed(bool ok);
  void end_one();

  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  Arrived arrived_hook_;
  StreamHooks* hooks_ = nullptr;
  std::atomic<int> under_way_ = 2;  // finish() and the call's end, which both come
  CompletionOf<ServerStream> arrived_{*this, &ServerStream::has_arrived};
  CompletionOf<ServerStream> greeted_{*this, &ServerStream::was_greeted};
  CompletionOf<ServerStream> read_{*this, &ServerStream::was_read};
  CompletionOf<ServerStream> written_{*this, &ServerStream::was_written};
  CompletionOf<ServerStream> finished_{*this, &ServerStream::was_finished};
  CompletionOf<ServerStream> closed_{*this, &ServerStream::was_closed};
};

}  // namespace kolo::detail
