#include <kolo/collectives/transport/lifelines.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include <kolo/core/base/stop_signal.h>

namespace kolo::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kWelcome = 'w', kGoodbye = 'g';
// A host that is lost is noticed after 4 s, as by kolorun's mpirun; a shorter break is survived.
constexpr int kIdleSeconds = 1, kProbeSeconds = 1, kProbes = 3;
// How often the thread looks for a signal; mpirun's SIGKILL comes a second after its SIGTERM.
constexpr int kSignalMilliseconds = 100;

sockaddr_in ip4(std::uint32_t host, std::uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = host;
  address.sin_port = htons(port);
  return address;
}

// Of all interfaces: which of them the neighbour can reach is found by trying.
template <class Hosts>
void find_own_addresses(Hosts& hosts) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return;
  auto next = hosts.begin();
  for (const ifaddrs* one = first; one != nullptr && next != hosts.end(); one = one->ifa_next)
    if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET)
      *next++ = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr;
  freeifaddrs(first);
}

void keep_alive(int fd) {
  const auto set = [fd](int level, int name, int value) {
    setsockopt(fd, level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

bool send_all(int fd, const void* bytes, std::size_t size) {
  return send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(size);
}

}  // namespace

Lifelines::Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Lifelines::Lifelines() {
  if (getrandom(address_.token.data(), sizeof address_.token, 0) != sizeof address_.token) return;
  Socket listener(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in own = ip4(INADDR_ANY, 0);
  socklen_t bytes = sizeof own;
  auto* const any = reinterpret_cast<sockaddr*>(&own);
  if (!listener || bind(listener.fd(), any, bytes) != 0 || listen(listener.fd(), SOMAXCONN) != 0 ||
      getsockname(listener.fd(), any, &bytes) != 0)
    return;
  find_own_addresses(address_.hosts);
  address_.port = ntohs(own.sin_port);
  listener_ = std::move(listener);
}

Lifelines::~Lifelines() {
  thread_.request_stop();
  if (over_) eventfd_write(over_.fd(), 1);
}

// A call goes to each address of the right neighbour, and shows its token; who is shown the own token
// answers, and the first call that is answered is kept. Others may have reached another host of the same
// address.
class Lifelines::Joining {
 public:
  Joining(const Address& own, const Address& right, Socket listener) : own_(own.token), shown_(right.token) {
    for (const std::uint32_t host : right.hosts) {
      if (host == 0 || right.port == 0) continue;
      Socket call(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      const sockaddr_in there = ip4(host, right.port);
      if (connect(call.fd(), reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0 ||
          errno == EINPROGRESS)
        peers_.push_back({std::move(call), Peer::calling});
    }
    if (listener) peers_.push_back({std::move(listener), Peer::listening});
  }

  /// Left and right; empty where the time was too short.
  std::pair<Socket, Socket> run(Clock::time_point end) {
    while ((!left_ || !right_) && !peers_.empty() && Clock::now() < end) {
      std::vector<pollfd> ready;
      for (const Peer& peer : peers_)
        ready.push_back(
            {peer.socket.fd(), static_cast<short>(peer.is == Peer::calling ? POLLOUT : POLLIN), 0});
      const auto rest = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
      if (::poll(ready.data(), ready.size(), static_cast<int>(rest.count())) <= 0) continue;
      for (std::size_t i = 0; i < ready.size(); ++i)
        if (ready[i].revents != 0 && !advance(i)) peers_[i].is = Peer::done;
      std::erase_if(peers_, [](const Peer& peer) { return peer.is == Peer::done; });
    }
    return {std::move(left_), std::move(right_)};
  }

 private:
  struct Peer {
    Socket socket;
    enum { listening, caller, calling, called, done } is;
  };

  // False: it is needed no more.
  bool advance(std::size_t place) {
    const int fd = peers_[place].socket.fd();
    switch (peers_[place].is) {
      case Peer::listening: {
        Socket caller(accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (caller) peers_.push_back({std::move(caller), Peer::caller});
        return true;
      }
      case Peer::caller: {
        Token token{};
        const bool is_left =
            recv(fd, token.data(), sizeof token, 0) == sizeof token && token == own_ && !left_;
        if (is_left && send_all(fd, &kWelcome, 1)) left_ = std::move(peers_[place].socket);
        return false;
      }
      case Peer::calling: peers_[place].is = Peer::called; return send_all(fd, shown_.data(), sizeof shown_);
      case Peer::called: {
        char answer = 0;
        if (recv(fd, &answer, 1, 0) == 1 && answer == kWelcome && !right_)
          right_ = std::move(peers_[place].socket);
        return false;
      }
      case Peer::done: break;
    }
    return false;
  }

  using Token = std::array<std::uint64_t, 2>;
  const Token own_, shown_;
  std::vector<Peer> peers_;
  Socket left_, right_;
};

void Lifelines::join(const Address& right, std::chrono::milliseconds within) {
  auto sockets = Joining(address_, right, std::move(listener_)).run(Clock::now() + within);
  for (const Socket* socket : {&sockets.first, &sockets.second})
    if (*socket) keep_alive(socket->fd());
  MutexLock lock(mutex_);
  left_.socket = std::move(sockets.first);
  right_.socket = std::move(sockets.second);
  for (Neighbour* neighbour : {&left_, &right_}) neighbour->watched = static_cast<bool>(neighbour->socket);
}

Lifelines::Held Lifelines::held() {
  MutexLock lock(mutex_);
  return {.left = static_cast<bool>(left_.socket), .right = static_cast<bool>(right_.socket)};
}

void Lifelines::agree(Held by_neighbours) {
  MutexLock lock(mutex_);
  if (!by_neighbours.left) left_ = Neighbour();
  if (!by_neighbours.right) right_ = Neighbour();
}

Lifelines::State Lifelines::look_at(Neighbour& neighbour) {
  if (!neighbour.watched) return State::there;
  char byte = 0;
  const ssize_t got = recv(neighbour.socket.fd(), &byte, 1, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return State::there;
  neighbour.watched = false;
  if (got > 0 && byte == kGoodbye) return State::there;
  return got < 0 && (errno == ETIMEDOUT || errno == EHOSTUNREACH || errno == ENETUNREACH) ? State::silent
                                                                                          : State::ended;
}

Lifelines::Lost Lifelines::look() {
  MutexLock lock(mutex_);
  const State left = look_at(left_), right = look_at(right_);
  return {.left = left != State::there,
          .right = right != State::there,
          .with_host = left == State::silent || right == State::silent};
}

void Lifelines::wait(int milliseconds) {
  std::vector<pollfd> ends = {{over_.fd(), POLLIN, 0}};
  {
    MutexLock lock(mutex_);
    for (const Neighbour* neighbour : {&left_, &right_})
      if (neighbour->watched) ends.push_back({neighbour->socket.fd(), POLLIN, 0});
  }
  ::poll(ends.data(), ends.size(), milliseconds);
}

void Lifelines::watch(std::function<void(Lost)> on_loss) {
  over_ = Socket(eventfd(0, EFD_CLOEXEC));
  thread_ = std::jthread([this, on_loss = std::move(on_loss)](const std::stop_token& stop) {
    block_stop_signals();
    for (bool has_said_goodbye = false; !stop.stop_requested();) {
      wait(kSignalMilliseconds);
      const Lost lost = look();
      if (lost.left || lost.right) on_loss(lost);
      if (!has_said_goodbye && is_about_to_end()) {
        say_goodbye();
        has_said_goodbye = true;
      }
    }
  });
}

void Lifelines::say_goodbye() {
  MutexLock lock(mutex_);
  for (const Neighbour* neighbour : {&left_, &right_})
    if (neighbour->socket) send_all(neighbour->socket.fd(), &kGoodbye, 1);
}

}  // namespace kolo::detail
