#include <kolo/core/cluster/rpc/rpc_server.h>

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <utility>

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/cluster/rpc/connections.h>
#include <kolo/core/cluster/rpc/listener.h>
#include <kolo/core/cluster/task_address.h>

#include <kolo/core/cluster/rpc/server_call_internal.h>
#include <kolo/core/cluster/rpc/stalled_calls_internal.h>
#include <kolo/core/cluster/rpc/transport_internal.h>

namespace kolo::detail {
namespace {

using nlohmann::json;

constexpr std::size_t kMostCallThreads = 4096;
constexpr std::size_t kMostCalls = 65536;
constexpr int kMostCallsOfOneConnection = 16384;
constexpr std::chrono::seconds kLastCalls{5};
constexpr std::chrono::seconds kStillWaitingForCalls{10};  // between two lines that say so

std::shared_ptr<grpc::ServerCredentials> transport_credentials(const LoadedCredentials& loaded) {
  if (!loaded.tls()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = loaded.ca;
  options.pem_key_cert_pairs.push_back({loaded.key, loaded.certificate});
  return grpc::SslServerCredentials(options);
}

// What the transport tells of itself ("channelz"). text: its own, to be freed.
json read_channelz(char* text) {
  const std::unique_ptr<char, decltype(&gpr_free)> owned(text, &gpr_free);
  json told = text == nullptr ? json() : json::parse(text, nullptr, false);
  return told.is_object() ? told : json::object();
}

// The number of the server that was made last in this process, as channelz has it.
std::intptr_t newest_server() {
  std::intptr_t newest = 0;
  for (bool is_end = false; !is_end;) {
    const json told = read_channelz(grpc_channelz_get_servers(newest + 1));
    for (const json& server : told.value("server", json::array()))
      newest =
          std::max<std::intptr_t>(newest, std::stoll(server.at("ref").at("serverId").get<std::string>()));
    is_end = told.value("end", true);
  }
  return newest;
}

// Numbers are texts there.
CallCounts counted_calls(std::intptr_t server) {
  const json told = read_channelz(grpc_channelz_get_server(server));
  const json data = told.value(json::json_pointer("/server/data"), json::object());
  const auto number = [&data](const char* name) { return std::stoll(data.value(name, std::string("0"))); };
  const std::int64_t begun = number("callsStarted");
  return {.begun = begun, .unseen = begun - number("callsSucceeded") - number("callsFailed")};
}

std::string user_name() {
  passwd entry{};
  passwd* found = nullptr;
  char text[4096];
  if (::getpwuid_r(::geteuid(), &entry, text, sizeof(text), &found) == 0 && found != nullptr)
    return found->pw_name;
  return std::to_string(::geteuid());
}

// Nothing of it is kept, but it has memory until the transport is done with it: the transport counts it as
// ended when it reads that the stream was reset.
class RefusedCall final : public StreamHooks {
 public:
  static void make(std::shared_ptr<ServerShared> shared, std::unique_ptr<ServerStream> stream,
                   const std::exception_ptr& error) {
    auto call = std::make_unique<RefusedCall>(std::move(shared), std::move(stream));
    ServerStream& own = *call->stream_;
    call->self_ = std::move(call);
    own.finish(to_status(error));
  }
  RefusedCall(std::shared_ptr<ServerShared> shared, std::unique_ptr<ServerStream> stream)
      : shared_(std::move(shared)), stream_(std::move(stream)) {
    ++shared_->refused;
    stream_->set_hooks(*this);
  }
  ~RefusedCall() override { --shared_->refused; }

 private:
  void on_read(bool /*ok*/) override {}
  void on_written(bool /*ok*/) override {}
  void on_cancel() override {}
  void on_over() override { const auto self = std::move(self_); }

  const std::shared_ptr<ServerShared> shared_;
  const std::unique_ptr<ServerStream> stream_;
  std::unique_ptr<RefusedCall> self_;
};

}  // namespace

class RpcServer::Impl final {
 public:
  explicit Impl(RpcServerOptions options);
  ~Impl() { stop(std::chrono::milliseconds(0)); }
  const std::string& address() const { return shared_->options.address; }
  void start(const Served& served);
  void stop(std::chrono::milliseconds grace);

 private:
  void await_call() KOLO_EXCLUDES(await_mutex_);
  void arrived(std::unique_ptr<ServerStream> stream) KOLO_EXCLUDES(await_mutex_);
  void take(std::unique_ptr<ServerStream> stream);
  void tell_who_may_come(const Listening& listening) const;
  void adopt(int listener, int connection);
  CallCounts calls();
  void wait_for_calls(std::chrono::milliseconds grace);
  void end_calls();
  void wait_for_handlers();

  std::shared_ptr<ServerShared> shared_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<KeptThreads> threads_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::intptr_t number_ = 0;  // of server_, as the transport has it
  std::unique_ptr<Connections> connections_;
  std::unique_ptr<StalledCalls> stalled_;
  Mutex await_mutex_;
  CondVar awaits_changed_;
  bool awaits_ KOLO_GUARDED_BY(await_mutex_) = false;  // a call may still come
  bool closing_ KOLO_GUARDED_BY(await_mutex_) = false;
  Mutex stop_mutex_;
  bool stopped_ KOLO_GUARDED_BY(stop_mutex_) = false;
};

RpcServer::Impl::Impl(RpcServerOptions options)
    : threads_(std::make_unique<KeptThreads>("kolo rpc", kMostCallThreads)) {
  options.limits = resolved(options.limits);
  if (options.limits.connections == 0) options.limits.connections = affordable_connections();
  if (options.limits.connections_of_peer == 0)
    options.limits.connections_of_peer = (options.limits.connections + 1) / 2;
  for (std::uint64_t* const bytes : {&options.limits.stranger_bytes, &options.limits.greeting_bytes}) {
    // Without a token whoever speaks the protocol is no stranger, and callers do not greet.
    if (options.credentials.token.empty()) *bytes = ~std::uint64_t{0};
    else *bytes += options.credentials.token.size();
  }
  Listening listening = listen_at(options.address, options.bind_address);
  shared_ = std::make_shared<ServerShared>(std::move(options));
  shared_->threads = threads_.get();
  use_transport();

  grpc::ServerBuilder builder;
  set_common_arguments([&](const char* name, int value) { builder.AddChannelArgument(name, value); });
  builder.AddChannelArgument("grpc.max_concurrent_streams", kMostCallsOfOneConnection);
  builder.AddChannelArgument(
      "grpc.server_handshake_timeout_ms",
      static_cast<int>(std::chrono::milliseconds(shared_->options.limits.handshake).count()));
  builder.SetMaxReceiveMessageSize((16 << 20) + (64 << 10));
  builder.RegisterAsyncGenericService(&service_);
  shared_->queue = PolledQueue::of_server(builder);
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      transport_credentials(shared_->options.credentials));
  {
    static Mutex one_at_a_time;
    MutexLock lock(one_at_a_time);
    const std::intptr_t before = newest_server();
    server_ = builder.BuildAndStart();
    number_ = newest_server();
    if (number_ == before) number_ = 0;
  }
  auto& own = shared_->options.address;
  if (server_ == nullptr) throw UnknownError("Could not start gRPC server: {} could not be served", own);
  if (listening.path.empty()) {
    TaskAddress bound = task_address_of(own);
    bound.port = listening.port;
    own = bound.to_string();
  }
  if (!shared_->options.credentials.any() && listening.path.empty()) tell_who_may_come(listening);
  stalled_ = std::make_unique<StalledCalls>(shared_);
  connections_ = std::make_unique<Connections>(
      std::move(listening), shared_->options.limits, shared_->options.task,
      [this](int listener, int connection) { adopt(listener, connection); }, [this] { return calls(); });
  connections_->start();
  PolledQueue::use_for_process(shared_->queue);
  await_call();
}

void RpcServer::Impl::tell_who_may_come(const Listening& listening) const {
  const auto& options = shared_->options;
  if (listening.only_this_machine)
    log_info("{} listens on {} without credentials: each user of this machine can run graphs as user {}",
             options.task, options.address, user_name());
  else
    log_warning("{} listens on {} without credentials: who reaches this port can run graphs as user {}",
                options.task, options.address, user_name());
}

void RpcServer::Impl::adopt(int listener, int connection) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.listener_fd = listener;
  parameters.fd = connection;
  acceptor_->HandleNewConnection(&parameters);
}

CallCounts RpcServer::Impl::calls() {
  CallCounts calls = counted_calls(number_);
  calls.unseen += shared_->refused;
  MutexLock lock(shared_->mutex);
  calls.unseen -= static_cast<std::int64_t>(shared_->calls.size());
  return calls;
}

// One at a time: the thread that would bring the next call is the one that takes this one. Not behind
// Shutdown(), which may miss what is asked for at the same time.
void RpcServer::Impl::await_call() {
  MutexLock lock(await_mutex_);
  if (!closing_) {
    awaits_ = true;
    return ServerStream::await(service_, *shared_->queue,
                               [this](std::unique_ptr<ServerStream> stream) { arrived(std::move(stream)); });
  }
  awaits_ = false;
  awaits_changed_.notify_all();
}

// stream: null where the server shuts down.
void RpcServer::Impl::arrived(std::unique_ptr<ServerStream> stream) {
  if (stream != nullptr) take(std::move(stream));
  await_call();
}

void RpcServer::Impl::take(std::unique_ptr<ServerStream> stream) {
  // Before anything is kept or counted: what a stranger may do costs those who are known nothing.
  if (const auto refusal = refusal_of(stream->context(), *shared_)) {
    connections_->call_refused(stream->context().peer());
    return RefusedCall::make(shared_, std::move(stream), refusal);
  }
  connections_->call_accepted(stream->context().peer());
  if (!header(stream->context(), kGreetKey).empty()) stream->send_initial_metadata();
  std::shared_ptr<ServerCall> call;
  std::exception_ptr refused;
  {
    MutexLock lock(shared_->mutex);
    if (shared_->stopping)
      refused = std::make_exception_ptr(UnavailableError("{} is shutting down", shared_->options.task));
    else if (shared_->calls.size() >= kMostCalls)
      refused = std::make_exception_ptr(
          ResourceExhaustedError("{} is limited to {} calls at a time", shared_->options.task, kMostCalls));
    else {
      call = std::make_shared<ServerCall>(shared_, std::move(stream));
      shared_->calls.add(call);
      if (!shared_->started) return shared_->waiting.push_back(call);
    }
  }
  if (refused != nullptr) return RefusedCall::make(shared_, std::move(stream), refused);
  call->begin();
}

void RpcServer::Impl::start(const Served& served) {
  std::vector<std::shared_ptr<ServerCall>> waiting;
  {
    MutexLock lock(shared_->mutex);
    if (shared_->started || shared_->stopping) return;
    shared_->served.emplace(served);
    shared_->started = true;
    waiting.swap(shared_->waiting);
  }
  for (const auto& call : waiting) call->begin();
}

void RpcServer::Impl::wait_for_calls(std::chrono::milliseconds grace) {
  const auto end = std::chrono::steady_clock::now() + grace;
  MutexLock lock(shared_->mutex);
  while (shared_->calls.size() > shared_->calls.watches())
    if (!shared_->changed.wait_until(shared_->mutex, end)) return;
}

// One that heeds no cancelling holds this up: its worker is still in use, and gRPC's own shutdown would wait
// for it in silence.
void RpcServer::Impl::wait_for_handlers() {
  const auto begin = std::chrono::steady_clock::now();
  for (auto told = kStillWaitingForCalls;; told += kStillWaitingForCalls) {
    const std::size_t left = threads_->wait_until_idle(begin + told);
    if (left == 0) return;
    log_warning("{} cannot stop for {} s: {} calls heed no cancelling", shared_->options.task, told.count(),
                left);
  }
}

void RpcServer::Impl::end_calls() {
  std::vector<std::shared_ptr<ServerCall>> calls;
  {
    MutexLock lock(shared_->mutex);
    calls = shared_->calls.all();
  }
  for (const auto& call : calls) {
    if (call->is_watch())
      call->finish(std::make_exception_ptr(UnavailableError("{} is shutting down", shared_->options.task)));
    else call->cancel();
  }
  calls.clear();
}

void RpcServer::Impl::stop(std::chrono::milliseconds grace) {
  MutexLock stopping(stop_mutex_);
  if (std::exchange(stopped_, true)) return;
  if (connections_ == nullptr) return;  // its constructor threw
  std::vector<std::shared_ptr<ServerCall>> waiting;
  {
    MutexLock lock(shared_->mutex);
    shared_->stopping = true;
    waiting.swap(shared_->waiting);
  }
  for (const auto& call : waiting)
    call->finish(std::make_exception_ptr(UnavailableError("{} is shutting down", shared_->options.task)));
  waiting.clear();
  wait_for_calls(grace);
  end_calls();
  wait_for_calls(kLastCalls);  // what they say last reaches their callers
  wait_for_handlers();
  stalled_.reset();
  connections_->stop();
  {
    MutexLock lock(await_mutex_);
    closing_ = true;
  }
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  {
    MutexLock lock(await_mutex_);
    while (awaits_) awaits_changed_.wait(await_mutex_);
  }
  {
    // Their memory is still in use.
    MutexLock lock(shared_->mutex);
    while (shared_->calls.size() > 0 || shared_->lent > 0) shared_->changed.wait(shared_->mutex);
  }
  threads_.reset();
  server_.reset();
  connections_.reset();
}

RpcServer::RpcServer(RpcServerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
RpcServer::~RpcServer() = default;
const std::string& RpcServer::address() const { return impl_->address(); }
void RpcServer::start(const Served& served) { impl_->start(served); }
void RpcServer::stop(std::chrono::milliseconds grace) { impl_->stop(grace); }

}  // namespace kolo::detail
