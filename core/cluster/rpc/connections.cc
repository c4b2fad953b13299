#include <kolo/core/cluster/rpc/connections.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

namespace kolo::detail {
namespace {

constexpr rlim_t kFewDescriptors = 1024, kEnoughDescriptors = 65536;
constexpr std::size_t kForTheRest = 1024;     // descriptors of all else that the process does
constexpr std::size_t kDescriptorsOfOne = 2;  // the transport's and ours
constexpr std::size_t kMostConnections = 16384;
constexpr int kAcceptedAtOnce = 16;  // then calls are counted once more
constexpr int kEventsAtOnce = 64;
constexpr int kPauseMs = 20;  // while not even the spare descriptor can be had
constexpr int kLookMs = 5;    // at calls that are not seen yet
constexpr int kTrimAfterMs = 2000;
constexpr int kMostLooks = 2000, kLooksAtTheSame = 400;
constexpr std::int64_t kFewCalls = 50;  // of strangers, in 2 s: they send no more
constexpr std::uint64_t kEnd = ~std::uint64_t{0};
constexpr std::uint64_t kListener = std::uint64_t{1} << 63;  // and its number

struct Peer {
  std::string name, host;
};

// As gRPC's context.peer() has it: an URI, whose brackets are escaped.
Peer peer_of(int connection) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getpeername(connection, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &address, sizeof(four));
    ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof(text));
    return {fmt::format("ipv4:{}:{}", text, ntohs(four.sin_port)), text};
  }
  if (address.ss_family != AF_INET6) return {};
  sockaddr_in6 six{};
  std::memcpy(&six, &address, sizeof(six));
  const int port = ntohs(six.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
    ::inet_ntop(AF_INET, &six.sin6_addr.s6_addr[12], text, sizeof(text));
    return {fmt::format("ipv4:{}:{}", text, port), text};
  }
  ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof(text));
  const std::string scope = six.sin6_scope_id != 0 ? fmt::format("%25{}", six.sin6_scope_id) : "";
  return {fmt::format("ipv6:%5B{}{}%5D:{}", text, scope, port), text};
}

bool watch(const Descriptor& events, const Descriptor& descriptor, std::uint32_t which, std::uint64_t id,
           int operation = EPOLL_CTL_ADD) {
  epoll_event event{};
  event.events = which;
  event.data.u64 = id;
  return ::epoll_ctl(events.get(), operation, descriptor.get(), &event) == 0;
}

// What the peer has sent, read or not; 0 where the kernel does not tell.
std::uint64_t received_bytes(const Descriptor& connection) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  return ::getsockopt(connection.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received
                                                                                  : 0;
}

Descriptor spare() { return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool is_out_of_descriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

std::size_t affordable_connections() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) limit = {kFewDescriptors, kFewDescriptors};
  const rlim_t wanted = std::min(limit.rlim_max, kEnoughDescriptors);
  if (limit.rlim_cur < wanted) {
    const rlimit raised{wanted, limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit.rlim_cur = wanted;
  }
  const auto all = static_cast<std::size_t>(std::min(limit.rlim_cur, kEnoughDescriptors));
  const std::size_t for_the_rest = std::min(all / 4, kForTheRest);
  return std::min((all - for_the_rest) / kDescriptorsOfOne, kMostConnections);
}

Connections::Connections(Listening listening, const RpcLimits& limits, std::string task,
                         std::function<void(int, int)> adopt, std::function<CallCounts()> calls)
    : listening_(std::move(listening)),
      most_(limits.connections),
      most_of_host_(limits.connections_of_peer),
      most_strangers_(std::min(limits.strangers, most_)),
      most_stranger_bytes_(limits.stranger_bytes),
      most_refused_(limits.refused_calls),
      most_unseen_(limits.unseen_calls),
      greeting_bytes_(limits.greeting_bytes),
      task_(std::move(task)),
      adopt_(std::move(adopt)),
      calls_(std::move(calls)),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      end_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      spare_(spare()) {
  if (events_.get() < 0 || end_.get() < 0)
    throw UnknownError("Could not start gRPC server: {}", std::strerror(errno));
  bool watched = watch(events_, end_, EPOLLIN, kEnd);
  for (std::size_t i = 0; i < listening_.sockets.size(); ++i)
    watched = watch(events_, listening_.sockets[i], EPOLLIN, kListener | i) && watched;
  if (!watched) throw UnknownError("Could not start gRPC server: epoll_ctl: {}", std::strerror(errno));
}

Connections::~Connections() { stop(); }

void Connections::start() {
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "kolo accept");
    serve();
  });
}

void Connections::stop() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(end_.get(), &one, sizeof(one));
    thread_.join();
  }
  if (!listening_.sockets.empty() && !listening_.path.empty()) ::unlink(listening_.path.c_str());
  listening_.sockets.clear();
}

void Connections::serve() {
  std::array<epoll_event, kEventsAtOnce> events{};
  while (true) {
    const int count = ::epoll_wait(events_.get(), events.data(), kEventsAtOnce, has_cut_ ? kTrimAfterMs : -1);
    give_back_memory();
    for (int i = 0; i < count; ++i) {
      const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
      if (id == kEnd) return;
      if ((id & kListener) != 0) {
        accept_some(listening_.sockets[id & ~kListener]);
        continue;
      }
      MutexLock lock(mutex_);
      const bool is_over = (events[static_cast<std::size_t>(i)].events & (EPOLLHUP | EPOLLERR)) != 0;
      if (is_over) forget(id);
      else check_bytes(id, most_stranger_bytes_);
    }
  }
}

// The calls of a stranger that is cut have taken pages all over the heap, which free() keeps: each flood
// would leave its own behind.
void Connections::give_back_memory() {
  if (!has_cut_ || !trimmed_.now()) return;
  has_cut_ = false;
  ::malloc_trim(0);
}

// On a busy machine strangers send calls faster than the server refuses them, and the transport keeps some
// 5 KiB for each until then. Meanwhile new connections wait in the kernel, for 10 s at most, and a stranger
// that has sent more than a greeting is cut.
//
// The transport never counts the end of a call that was reset before its headers were read. An hour of resets
// leaves some thousands of those. Calls that it does hand over become fewer as soon as strangers send no
// more: a number that then stays for 2 s is that of the others.
void Connections::wait_until_calls_are_seen() {
  const auto of_strangers = [this](const CallCounts& calls) { return calls.begun - accepted_.load(); };
  CallCounts now = calls_();
  never_seen_ = std::min(never_seen_, now.unseen);
  std::int64_t least = now.unseen, before = of_strangers(now);
  for (int look = 0, same = 0; look < kMostLooks && now.unseen - never_seen_ > most_unseen_; ++look) {
    {
      MutexLock lock(mutex_);
      for (const Id id : std::set<Id>(strangers_)) check_bytes(id, greeting_bytes_);
    }
    pollfd end{.fd = end_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&end, 1, kLookMs) > 0) return;
    now = calls_();
    if (now.unseen < least || of_strangers(now) > before + kFewCalls)
      same = 0, least = now.unseen, before = of_strangers(now);
    else if (++same == kLooksAtTheSame) never_seen_ = least;
  }
}

void Connections::accept_some(const Descriptor& listener) {
  wait_until_calls_are_seen();
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    Descriptor connection(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection.get() < 0) {
      if (is_out_of_descriptors(errno)) drop_one(listener);
      return;  // nobody waits, or it has gone meanwhile: epoll tells when there is one
    }
    try {
      admit(listener, std::move(connection));
    } catch (const std::exception& error) {  // no memory: it is closed
      if (told_full_.now()) log_warning("{} cannot take a connection: {}", task_, error.what());
    }
  }
}

void Connections::tell_no_descriptor() {
  const int error = errno;
  if (told_no_descriptor_.now())
    log_warning(
        "{} has no descriptor left for a connection ({}): it closes new ones; raise the limit of "
        "open files (ulimit -n)",
        task_, std::strerror(error));
}

// One that is neither accepted nor closed would be reported again and again.
void Connections::drop_one(const Descriptor& listener) {
  tell_no_descriptor();
  spare_ = Descriptor();
  { const Descriptor dropped(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  spare_ = spare();
  if (spare_.get() < 0) ::poll(nullptr, 0, kPauseMs);
}

void Connections::admit(const Descriptor& listener, Descriptor connection) {
  const Peer peer = peer_of(connection.get());
  if (peer.name.empty() && listening_.path.empty()) return;  // it is gone already
  Descriptor second(::fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  if (second.get() < 0) return tell_no_descriptor();
  // All of it would be read before anybody could look: 5,000 calls in a moment, from each newcomer.
  if (received_bytes(connection) > most_stranger_bytes_) return;
  {
    MutexLock lock(mutex_);
    if (!make_place(peer.host)) return;
    const Id id = ++last_id_;
    // That it has ended is told in any case.
    if (!watch(events_, second, listening_.path.empty() ? EPOLLIN | EPOLLET : 0, id)) return;
    auto& made = connections_[id];
    made.second = std::move(second), made.peer = peer.name, made.host = peer.host;
    strangers_.insert(id);
    if (!peer.name.empty()) by_peer_.insert_or_assign(peer.name, id);
    auto& counts = by_host_[peer.host];
    ++counts.all, ++counts.strangers;
  }
  adopt_(listener.get(), connection.release());
}

bool Connections::make_place(const std::string& host) {
  const auto known = by_host_.find(host);
  const Counts of_host = known == by_host_.end() ? Counts() : known->second;
  const bool is_net = listening_.path.empty();  // a path has one host, that of its owner
  const bool is_full = connections_.size() >= most_;
  const bool host_is_full = is_net && of_host.all >= most_of_host_;
  if ((is_full || host_is_full) && told_full_.now())
    log_warning(
        "{} has {} connections, {} of them from {}: it takes no more than {}, {} from one address, and "
        "cuts or closes the others",
        task_, connections_.size(), of_host.all, is_net ? host : "here", most_, most_of_host_);
  if (host_is_full) return cut_oldest_stranger(host);
  if (is_net && of_host.strangers >= std::max<std::size_t>(most_strangers_ / 2, 1))
    return cut_oldest_stranger(host);
  if (is_full || strangers_.size() >= most_strangers_) {
    if (strangers_.empty()) return false;
    cut(*strangers_.begin());
  }
  return true;
}

bool Connections::cut_oldest_stranger(const std::string& host) {
  for (const Id id : strangers_)
    if (connections_.at(id).host == host) {
      cut(id);
      return true;
    }
  return false;
}

// The transport reads on while there is something to read, and hands over no call until then: bytes are all
// that bounds what it makes of them.
void Connections::check_bytes(Id id, std::uint64_t most) {
  if (strangers_.count(id) > 0 && received_bytes(connections_.at(id).second) > most) cut(id);
}

// The transport finds it broken, and closes its own descriptor. To be disconnected drops what has come but is
// not read yet, too: behind a mere shutdown the transport would work through megabytes of it.
void Connections::cut(Id id) {
  const int connection = connections_.at(id).second.get();
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  static_cast<void>(::connect(connection, &nobody, sizeof(nobody)));
  ::shutdown(connection, SHUT_RDWR);
  forget(id);
  has_cut_ = true;
}

void Connections::forget(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const Connection& gone = found->second;
  if (const auto named = by_peer_.find(gone.peer); named != by_peer_.end() && named->second == id)
    by_peer_.erase(named);
  const auto counts = by_host_.find(gone.host);
  counts->second.strangers -= strangers_.erase(id);
  if (--counts->second.all == 0) by_host_.erase(counts);
  connections_.erase(found);
}

Connections::Connection* Connections::find(const std::string& peer) {
  const auto found = by_peer_.find(peer);
  return found == by_peer_.end() ? nullptr : &connections_.at(found->second);
}

void Connections::call_accepted(const std::string& peer) {
  ++accepted_;
  MutexLock lock(mutex_);
  Connection* const connection = find(peer);
  if (connection == nullptr || !std::exchange(connection->is_stranger, false)) return;
  const Id id = by_peer_.at(peer);
  watch(events_, connection->second, 0, id, EPOLL_CTL_MOD);
  strangers_.erase(id);
  --by_host_.at(connection->host).strangers;
}

void Connections::call_refused(const std::string& peer) {
  MutexLock lock(mutex_);
  Connection* const connection = find(peer);
  if (connection != nullptr && connection->is_stranger && ++connection->refused > most_refused_)
    cut(by_peer_.at(peer));
}

}  // namespace kolo::detail
