#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/cluster/rpc/caller.h>

#include <kolo/core/cluster/rpc/server_call_internal.h>
#include <kolo/core/cluster/rpc/step_streams_internal.h>
#include <kolo/core/cluster/rpc/transport_internal.h>

namespace kolo::detail {
namespace {

thread_local std::string caller_of_thread;

std::string_view after_slash(std::string_view name) {
  const auto slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

// The library's deadlines are on the system's clock.
std::optional<Deadline::Time> on_steady_clock(std::chrono::system_clock::time_point deadline) {
  if (deadline == std::chrono::system_clock::time_point::max()) return std::nullopt;
  const auto left = deadline - std::chrono::system_clock::now();
  if (left > std::chrono::hours(24 * 365)) return std::nullopt;
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(left);
}

}  // namespace

// A master's is over before its client's: its answer must not lose against the transport.
std::optional<Deadline::Time> own_deadline(const grpc::GenericServerContext& context) {
  auto deadline = on_steady_clock(context.deadline());
  if (deadline && context.method().starts_with(kMasterService)) *deadline -= kAnswerTime;
  return deadline;
}

std::string header(const grpc::GenericServerContext& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  return found == context.client_metadata().end() ? ""
                                                  : std::string(found->second.data(), found->second.size());
}

const std::string& rpc_caller() { return caller_of_thread; }

void ServerShared::note_refused(const std::string& peer, const std::string& why) {
  if (told_refused_.now()) log_warning("refused a call of {}: {}", peer, why);
}

void OpenCalls::add(const std::shared_ptr<ServerCall>& call) {
  call->place_ = calls_.size();
  calls_.push_back(call);
  if (call->is_watch()) ++watches_;
}

std::shared_ptr<ServerCall> OpenCalls::remove(ServerCall& call) {
  const std::size_t place = std::exchange(call.place_, ServerCall::kNoPlace);
  if (place == ServerCall::kNoPlace) return nullptr;
  if (call.is_watch()) --watches_;
  calls_.back()->place_ = place;
  std::swap(calls_[place], calls_.back());
  auto removed = std::move(calls_.back());
  calls_.pop_back();
  removed->place_ = ServerCall::kNoPlace;
  return removed;
}

ServerCall::ServerCall(std::shared_ptr<ServerShared> shared, std::unique_ptr<ServerStream> stream)
    : shared_(std::move(shared)),
      stream_(std::move(stream)),
      method_name_(stream_->context().method()),
      peer_(stream_->context().peer()),
      is_watch_(after_slash(method_name_) == "Watch"),
      deadline_(own_deadline(stream_->context()), stop_.get_token()) {
  stream_->set_hooks(*this);
  const std::string_view name = method_name_;
  if (name.starts_with(kWorkerService)) method_ = worker_method(name.substr(std::strlen(kWorkerService)));
  else if (name.starts_with(kMasterService))
    method_ = master_method(name.substr(std::strlen(kMasterService)));
}

ServerCall::~ServerCall() = default;

std::exception_ptr refusal_of(const grpc::GenericServerContext& context, ServerShared& shared) {
  const RpcServerOptions& options = shared.options;
  if (!options.credentials.token.empty() &&
      !same_secret(header(context, kTokenKey), options.credentials.token)) {
    shared.note_refused(context.peer(), "no or another token");
    return std::make_exception_ptr(
        FailedPreconditionError("{} refused this process: no or another token", options.address));
  }
  try {
    const std::string version = checked_name(header(context, kVersionKey), "version");
    if (version == rpc_version()) return nullptr;
    throw FailedPreconditionError("{} runs kolo {}, its caller kolo {}", options.task, rpc_version(),
                                  version.empty() ? "of no version" : version);
  } catch (...) {
    return std::current_exception();
  }
}

void ServerCall::check_destination() {
  const auto& options = shared_->options;
  sender_ = checked_name(header(stream_->context(), kCallerKey), "caller");
  const std::string wanted = header(stream_->context(), kTaskKey);
  const std::string cluster = header(stream_->context(), kClusterKey);
  if ((!wanted.empty() && wanted != options.task) ||
      (!cluster.empty() && cluster != fmt::format("{:016x}", served().cluster_fingerprint)))
    throw FailedPreconditionError("{} is {} of another cluster", options.address, options.task);
}

void ServerCall::begin() {
  {
    MutexLock lock(mutex_);
    if (finishing_) return;  // it was cancelled before the server was there; its context may be gone
  }
  try {
    check_destination();
    if (method_ == nullptr) {
      shared_->note_refused(peer_, "it called a method that there is not");
      throw UnimplementedError("{} has no such method", shared_->options.task);
    }
  } catch (...) {
    return finish(std::current_exception());
  }
  read_on();
}

void ServerCall::read_on() {
  MutexLock lock(mutex_);
  if (finished_) return;
  if (!control_read_ || !method_->waits_for_ever()) silent_since_ = std::chrono::steady_clock::now();
  stream_->read(&incoming_);
}

void ServerCall::on_read(bool ok) {
  const auto self = shared_from_this();
  silent_since_ = kNotSilent;
  bool more = false;
  try {
    if (ok) {
      grpc::ByteBuffer received;
      received.Swap(&incoming_);
      const MessagePieces message(received);
      if (std::exchange(control_read_, true)) {
        more = method_->on_more(self, message);
      } else {
        const auto limit = static_cast<std::size_t>(shared_->options.limits.control_bytes);
        if (received.Length() > limit)
          throw ResourceExhaustedError("a control message is limited to {} bytes; {} came", limit,
                                       received.Length());
        more = method_->on_control(self, message.joined());
      }
    } else {
      if (!control_read_) throw InvalidArgumentError("a call without a message came");
      method_->on_all_read(self);
    }
  } catch (const std::exception& error) {
    if (code_of(error) == Code::invalid_argument) {
      if (ok) shared_->note_refused(peer_, error.what());
      else cut_short_ = error.what();  // or its client has gone: that is known in the end
    }
    finish(std::current_exception());
    request_stop();  // a handler that waits for more of it
  }
  if (more) read_on();
}

void ServerCall::send(Outgoing outgoing) {
  MutexLock lock(mutex_);
  if (finishing_ || cancelled_) return;
  queue_.push_back(std::move(outgoing));
  advance();
}

void ServerCall::send_last(Outgoing outgoing) {
  Outgoings dropped;  // destroyed without the lock
  MutexLock lock(mutex_);
  if (std::exchange(finishing_, true)) return;
  if (cancelled_) dropped.swap(queue_);
  else queue_.push_back(std::move(outgoing));
  advance();
}

bool ServerCall::send_and_wait(std::size_t key, const Tensor& value) {
  struct Waiter {
    Mutex mutex;
    CondVar changed;
    bool released KOLO_GUARDED_BY(mutex) = false;
  } waiter;
  send(Outgoing::tensor(key, value, chunk_bytes(), [&waiter] {
    MutexLock lock(waiter.mutex);
    waiter.released = true;
    waiter.changed.notify_all();
  }));
  {
    // Ends with the call at the latest: its client takes the bytes, or is found dead by the pings.
    MutexLock lock(waiter.mutex);
    while (!waiter.released) waiter.changed.wait(waiter.mutex);
  }
  MutexLock lock(mutex_);
  return !cancelled_;
}

void ServerCall::lend(std::size_t key, const Tensor& value, std::function<void()> released, bool last) {
  {
    MutexLock lock(shared_->mutex);
    ++shared_->lent;
  }
  auto outgoing = lent_tensor(key, value, chunk_bytes(), *shared_->threads,
                              [shared = shared_.get(), released = std::move(released)] {
                                released();
                                MutexLock lock(shared->mutex);
                                --shared->lent;
                                shared->changed.notify_all();
                              });
  if (last) send_last(std::move(outgoing));
  else send(std::move(outgoing));
}

void ServerCall::advance() {
  if (writing_ || finished_) return;
  if (!queue_.empty()) {
    outgoing_ = queue_.front().next();
    if (queue_.front().done()) queue_.pop_front();
    writing_ = true;
    if (queue_.empty() && finishing_) {
      finished_ = true;
      return stream_->write_and_finish(outgoing_, to_status(error_));
    }
    return stream_->write(outgoing_);
  }
  if (!finishing_) return;
  finished_ = true;
  stream_->finish(to_status(error_));
}

void ServerCall::on_written(bool ok) {
  Outgoings dropped;  // destroyed without the lock
  grpc::ByteBuffer written;
  MutexLock lock(mutex_);
  writing_ = false;
  written.Swap(&outgoing_);
  if (!ok) dropped.swap(queue_);
  advance();
}

void ServerCall::finish(std::exception_ptr error) {
  Outgoings dropped;
  MutexLock lock(mutex_);
  if (std::exchange(finishing_, true)) return;
  if (error != nullptr || cancelled_) dropped.swap(queue_);
  error_ = std::move(error);
  advance();
}

void ServerCall::cancel() {
  MutexLock lock(mutex_);
  if (!finished_) stream_->context().TryCancel();
}

void ServerCall::on_cancel() {
  const auto self = shared_from_this();
  Outgoings dropped;
  {
    // At once, whatever its handler does: only a finished call lets go of the values that its client has
    // left, and handlers wait for that.
    MutexLock lock(mutex_);
    cancelled_ = true;
    dropped.swap(queue_);
    if (!std::exchange(finishing_, true))
      error_ = std::make_exception_ptr(CancelledError("the call was cancelled"));
    advance();
  }
  dropped.clear();
  request_stop();
}

void ServerCall::when_stopped(std::function<void()> hook) {
  {
    MutexLock lock(mutex_);
    if (!stopped_) {
      if (!finished_) stop_hooks_.push_back(std::move(hook));
      return;
    }
  }
  hook();
}

void ServerCall::request_stop() {
  std::vector<std::function<void()>> hooks;
  {
    MutexLock lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    hooks.swap(stop_hooks_);
  }
  stop_.request_stop();
  for (const auto& hook : hooks) hook();
}

void ServerCall::on_over() {
  std::shared_ptr<ServerCall> self;
  std::vector<std::function<void()>> hooks;  // they may hold what holds this
  grpc::ByteBuffer written;
  // With it goes what the transport has kept of tensors that it did not send: a handler may wait for them.
  const auto stream = std::move(stream_);
  {
    MutexLock lock(mutex_);
    hooks.swap(stop_hooks_);
    written.Swap(&outgoing_);
    if (!cancelled_ && !cut_short_.empty()) shared_->note_refused(peer_, cut_short_);
  }
  {
    MutexLock lock(shared_->mutex);
    self = shared_->calls.remove(*this);
    shared_->changed.notify_all();
  }
}

void ServerCall::handle(std::function<void()> work) {
  shared_->threads->run([self = shared_from_this(), work = std::move(work)] {
    caller_of_thread = fmt::format("{} at {}", self->sender_, self->peer_);
    try {
      work();
    } catch (...) {
      self->finish(std::current_exception());
    }
    caller_of_thread.clear();
  });
}

}  // namespace kolo::detail
