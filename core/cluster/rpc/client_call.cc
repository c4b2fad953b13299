#include <utility>

#include <fmt/format.h>

#include <kolo/core/base/error.h>

#include <kolo/core/cluster/rpc/client_call_internal.h>
#include <kolo/core/cluster/rpc/transport_internal.h>

namespace kolo::detail {

ClientCall::ClientCall(std::shared_ptr<RpcChannel> channel, std::string method, const std::string& task,
                       const Deadline& deadline)
    : channel_(std::move(channel)),
      transport_(channel_->transport()),
      method_(std::move(method)),
      context_(std::make_unique<grpc::ClientContext>()) {
  const Caller& caller = channel_->caller();
  context_->AddMetadata(kCallerKey, caller.name);
  context_->AddMetadata(kVersionKey, rpc_version());
  if (!task.empty()) {
    context_->AddMetadata(kTaskKey, task);
    if (caller.cluster_fingerprint != 0)
      context_->AddMetadata(kClusterKey, fmt::format("{:016x}", caller.cluster_fingerprint));
  }
  if (!caller.credentials.token.empty()) context_->AddMetadata(kTokenKey, caller.credentials.token);
  if (deadline) {
    const auto left = *deadline - std::chrono::steady_clock::now();
    context_->set_deadline(std::chrono::system_clock::now() +
                           std::chrono::duration_cast<std::chrono::system_clock::duration>(left));
  }
  // To a server with a token a new connection is a stranger's, which may not send much. Else the metadata go
  // with the first message.
  const bool greets = !caller.credentials.token.empty() && transport_->GetState(false) != GRPC_CHANNEL_READY;
  if (greets) context_->AddMetadata(kGreetKey, "1");
  context_->set_initial_metadata_corked(!greets);
  greetings_ = greets ? 2 : 0;  // that it is sent, and that the server has taken the call
}

ClientCall::~ClientCall() = default;

void ClientCall::send(Outgoing outgoing, bool last) {
  MutexLock lock(mutex_);
  if (reads_over_) return;
  queue_.push_back(std::move(outgoing));
  last_given_ = last_given_ || last;
  if (has_started_ && !writing_ && greetings_ == 0) write_next();
}

void ClientCall::start(bool reads) {
  auto self = shared_from_this();
  MutexLock lock(mutex_);
  self_ = std::move(self);
  polled_ = PolledQueue::of_process();
  stream_ = grpc::GenericStub(transport_).PrepareCall(context_.get(), method_, polled_->get());
  has_started_ = true;
  wants_read_ = wants_read_ || reads;
  if (greetings_ > 0) {
    stream_->StartCall(started_.tag());
    stream_->ReadInitialMetadata(greeted_.tag());
  } else {
    stream_->StartCall(nullptr);  // no operation: the first message takes it along
    if (!queue_.empty()) write_next();
    if (wants_read_) read_next();
  }
  if (cancelled_) context_->TryCancel();
}

void ClientCall::start_unary() {
  {
    auto self = shared_from_this();
    MutexLock lock(mutex_);
    if (greetings_ == 0) {
      self_ = std::move(self);
      polled_ = PolledQueue::of_process();
      const grpc::ByteBuffer message = queue_.front().next();
      queue_.clear();
      has_started_ = reads_over_ = finishing_ = true;
      context_->set_initial_metadata_corked(false);  // all goes at once anyway
      unary_ =
          grpc::GenericStub(transport_).PrepareUnaryCall(context_.get(), method_, message, polled_->get());
      unary_->StartCall();
      unary_->Finish(&incoming_, &status_, answered_.tag());
      if (cancelled_) context_->TryCancel();
      return;
    }
  }
  start();  // the message waits until the server has taken the call
}

void ClientCall::cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  if (has_started_ && !over_) context_->TryCancel();
}

void ClientCall::fail(std::exception_ptr error) {
  MutexLock lock(mutex_);
  if (own_error_ == nullptr) own_error_ = std::move(error);
  if (has_started_ && !over_) context_->TryCancel();
}

void ClientCall::read_on() {
  MutexLock lock(mutex_);
  if (!has_started_ || greetings_ > 0) wants_read_ = true;
  else if (!reads_over_) read_next();
}

void ClientCall::read_next() { stream_->Read(&incoming_, read_.tag()); }

void ClientCall::write_next() {
  grpc::WriteOptions options;
  outgoing_ = queue_.front().next();
  if (queue_.front().done()) queue_.pop_front();
  if (queue_.empty() && last_given_) options.set_last_message();
  writing_ = true;
  stream_->Write(outgoing_, options, written_.tag());
}

void ClientCall::finish_if_last() {
  if (writing_ || !reads_over_ || std::exchange(finishing_, true)) return;
  stream_->Finish(&status_, finished_.tag());
}

void ClientCall::was_greeted(bool /*ok*/) {
  MutexLock lock(mutex_);
  if (--greetings_ > 0) return;
  if (!queue_.empty()) write_next();
  if (wants_read_) read_next();
}

void ClientCall::was_read(bool ok) {
  auto next = Next::none;
  if (ok) {
    // Out of the transport's reach: read_on() may come before the hook has returned.
    grpc::ByteBuffer received;
    received.Swap(&incoming_);
    try {
      const MessagePieces message(received);
      next = on_message(message);
    } catch (...) {
      fail(std::current_exception());
      next = Next::read;  // up to the end that the cancelling brings
    }
  }
  MutexLock lock(mutex_);
  if (next == Next::pause) return;
  if (next == Next::read) return read_next();
  reads_over_ = true;
  finish_if_last();
}

void ClientCall::was_answered(bool ok) {
  try {
    if (incoming_.Valid() && on_message(MessagePieces(incoming_)) != Next::none)
      throw InternalError("{} announced more than one message as its answer", channel_->address());
  } catch (...) {
    MutexLock lock(mutex_);
    if (own_error_ == nullptr) own_error_ = std::current_exception();
  }
  was_finished(ok);
}

void ClientCall::was_written(bool ok) {
  Outgoings dropped;  // destroyed without the lock
  grpc::ByteBuffer written;
  MutexLock lock(mutex_);
  writing_ = false;
  written.Swap(&outgoing_);
  if (!ok || reads_over_) dropped.swap(queue_);
  if (!queue_.empty()) write_next();
  finish_if_last();
}

void ClientCall::was_finished(bool /*ok*/) {
  std::exception_ptr error;
  Outgoings dropped;
  std::shared_ptr<ClientCall> self;
  {
    MutexLock lock(mutex_);
    over_ = true;
    dropped.swap(queue_);
    self = std::move(self_);
    error = own_error_ != nullptr ? own_error_ : from_status(status_, channel_->address(), cancelled_);
  }
  dropped.clear();
  // With them goes what the transport has kept of tensors that it did not send: somebody may wait for them.
  stream_.reset();
  unary_.reset();
  context_.reset();
  on_end(error);
}

}  // namespace kolo::detail
