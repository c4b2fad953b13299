#include <utility>

#include <fmt/format.h>

#include <kolo/core/base/error.h>

#include <kolo/core/cluster/rpc/client_call_internal.h>
#include <kolo/core/cluster/rpc/transport_internal.h>

namespace kolo::detail {

class ClientCall::Reactor final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit Reactor(ClientCall& call) : call_(call) {}
  void OnReadInitialMetadataDone(bool /*ok*/) override {
    take_over(this);
    call_.greeted();
  }
  void OnReadDone(bool ok) override {
    take_over(this);
    call_.read_done(ok);
  }
  void OnWriteDone(bool ok) override {
    take_over(this);
    call_.write_done(ok);
  }
  void OnDone(const grpc::Status& status) override {
    take_over(this);
    call_.call_done(status);
  }

 private:
  ClientCall& call_;
};

class ClientCall::UnaryReactor final : public grpc::ClientUnaryReactor {
 public:
  explicit UnaryReactor(ClientCall& call) : call_(call) {}
  void OnReadInitialMetadataDone(bool /*ok*/) override { take_over(this); }
  void OnDone(const grpc::Status& status) override {
    take_over(this);
    call_.answered(status);
  }

 private:
  ClientCall& call_;
};

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
  greeting_ = !caller.credentials.token.empty() && transport_->GetState(false) != GRPC_CHANNEL_READY;
  if (greeting_) context_->AddMetadata(kGreetKey, "1");
  context_->set_initial_metadata_corked(!greeting_);
}

ClientCall::~ClientCall() = default;

void ClientCall::send(Outgoing outgoing, bool last) {
  MutexLock lock(mutex_);
  if (reads_over_) return;
  queue_.push_back(std::move(outgoing));
  last_given_ = last_given_ || last;
  if (started_ && !writing_ && !greeting_) write_next();
}

void ClientCall::start(bool reads) {
  auto self = shared_from_this();
  MutexLock lock(mutex_);
  self_ = std::move(self);
  reactor_ = std::make_unique<Reactor>(*this);
  hand_over(reactor_.get());
  grpc::GenericStub(transport_).PrepareBidiStreamingCall(context_.get(), method_, {}, reactor_.get());
  reactor_->AddHold();  // for what other threads send; see let_go()
  held_ = true;
  started_ = true;
  if (reads) reactor_->StartRead(&incoming_);
  if (!queue_.empty() && !greeting_) write_next();
  reactor_->StartCall();
  if (cancelled_) context_->TryCancel();
}

void ClientCall::start_unary() {
  {
    auto self = shared_from_this();
    MutexLock lock(mutex_);
    if (!greeting_) {
      self_ = std::move(self);
      unary_ = std::make_unique<UnaryReactor>(*this);
      outgoing_ = queue_.front().next();
      queue_.clear();
      started_ = reads_over_ = true;
      context_->set_initial_metadata_corked(false);  // all goes at once anyway
      grpc::GenericStub(transport_)
          .PrepareUnaryCall(context_.get(), method_, {}, &outgoing_, &incoming_, unary_.get());
      hand_over(unary_.get());
      unary_->StartCall();
      if (cancelled_) context_->TryCancel();
      return;
    }
  }
  start();  // the message waits until the server has taken the call
}

void ClientCall::cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  if (started_ && !over_) context_->TryCancel();
}

void ClientCall::fail(std::exception_ptr error) {
  MutexLock lock(mutex_);
  if (own_error_ == nullptr) own_error_ = std::move(error);
  if (started_ && !over_) context_->TryCancel();
}

void ClientCall::read_on() {
  MutexLock lock(mutex_);
  hand_over(reactor_.get());
  if (!reads_over_) reactor_->StartRead(&incoming_);
}

void ClientCall::write_next() {
  grpc::WriteOptions options;
  outgoing_ = queue_.front().next();
  if (queue_.front().done()) queue_.pop_front();
  if (queue_.empty() && last_given_) {
    options.set_last_message();
    last_sent_ = true;
  }
  writing_ = true;
  hand_over(reactor_.get());
  reactor_->StartWrite(&outgoing_, options);
}

void ClientCall::let_go() {
  if (!writing_ && reads_over_ && std::exchange(held_, false)) reactor_->RemoveHold();
}

void ClientCall::greeted() {
  MutexLock lock(mutex_);
  if (std::exchange(greeting_, false) && !reads_over_ && !queue_.empty()) write_next();
}

void ClientCall::read_done(bool ok) {
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
  hand_over(reactor_.get());
  if (next == Next::read) return reactor_->StartRead(&incoming_);
  reads_over_ = true;
  let_go();
}

void ClientCall::answered(const grpc::Status& status) {
  try {
    if (incoming_.Valid() && on_message(MessagePieces(incoming_)) != Next::none)
      throw InternalError("{} announced more than one message as its answer", channel_->address());
  } catch (...) {
    MutexLock lock(mutex_);
    if (own_error_ == nullptr) own_error_ = std::current_exception();
  }
  call_done(status);
}

void ClientCall::write_done(bool ok) {
  Outgoings dropped;  // destroyed without the lock
  grpc::ByteBuffer written;
  MutexLock lock(mutex_);
  writing_ = false;
  written.Swap(&outgoing_);
  if (!ok || reads_over_) dropped.swap(queue_);
  if (!queue_.empty()) write_next();
  let_go();
}

void ClientCall::call_done(const grpc::Status& status) {
  std::exception_ptr error;
  Outgoings dropped;
  std::shared_ptr<ClientCall> self;
  {
    MutexLock lock(mutex_);
    over_ = true;
    reads_over_ = true;
    dropped.swap(queue_);
    self = std::move(self_);
    error = own_error_ != nullptr ? own_error_ : from_status(status, channel_->address(), cancelled_);
  }
  dropped.clear();
  // With it goes what the transport has kept of tensors that it did not send: somebody may wait for them.
  context_.reset();
  on_end(error);
}

}  // namespace kolo::detail
