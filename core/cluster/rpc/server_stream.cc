#include <utility>

#include <kolo/core/cluster/rpc/server_stream_internal.h>

namespace kolo::detail {

void ServerStream::await(grpc::AsyncGenericService& service, PolledQueue& queue, Arrived arrived) {
  // Its own until it has arrived.
  ServerStream* const stream = std::unique_ptr<ServerStream>(new ServerStream(std::move(arrived))).release();
  service.RequestCall(&stream->context_, &stream->stream_, queue.get(), queue.for_server(),
                      stream->arrived_.tag());
}

void ServerStream::has_arrived(bool ok) {
  std::unique_ptr<ServerStream> self(this);
  const Arrived hook = std::move(arrived_hook_);
  if (!ok) self.reset();
  hook(std::move(self));
}

void ServerStream::was_greeted(bool /*ok*/) { end_one(); }

void ServerStream::was_read(bool ok) {
  hooks_->on_read(ok);
  end_one();
}

void ServerStream::was_written(bool ok) {
  hooks_->on_written(ok);
  end_one();
}

void ServerStream::was_finished(bool /*ok*/) { end_one(); }

void ServerStream::was_closed(bool /*ok*/) {
  if (context_.IsCancelled()) hooks_->on_cancel();
  end_one();
}

void ServerStream::end_one() {
  if (--under_way_ == 0) hooks_->on_over();
}

}  // namespace kolo::detail
