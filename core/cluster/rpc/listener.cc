#include <kolo/core/cluster/rpc/listener.h>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/task_address.h>

namespace kolo::detail {
namespace {

constexpr int kWaiting = 4096;             // connections that are not accepted yet
constexpr unsigned kUserTimeoutMs = 2000;  // of bytes that a peer does not confirm: the pings' own patience
constexpr int kOwnerOnly = 0600;

Descriptor make_socket(int family) {
  return Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

[[noreturn]] void throw_refused(const std::string& reason) {
  throw UnknownError("Could not start gRPC server: {}", reason);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses look_up(const std::string& host, int port) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  // As clients take it: `localhost` is 127.0.0.1.
  const char* const name = host == "localhost" ? "127.0.0.1" : host.c_str();
  const int failed = ::getaddrinfo(name, std::to_string(port).c_str(), &wanted, &found);
  if (failed != 0) throw_refused(fmt::format("{}: {}", host, ::gai_strerror(failed)));
  return {found, &::freeaddrinfo};
}

std::string numeric(const addrinfo& address) {
  char host[NI_MAXHOST] = {};
  ::getnameinfo(address.ai_addr, address.ai_addrlen, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return host;
}

template <typename Value>
void set_option(const Descriptor& socket, int level, int option, Value value) {
  ::setsockopt(socket.get(), level, option, &value, sizeof(value));
}

/// 0, or errno. both: of a v6 address, v4 as well.
int bind_and_listen(const Descriptor& socket, const sockaddr* address, socklen_t size, bool both) {
  if (socket.get() < 0) return errno;
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address->sa_family == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, both ? 0 : 1);
  if (address->sa_family != AF_UNIX) {  // what is accepted has them, too
    set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
  }
  if (::bind(socket.get(), address, size) != 0) return errno;
  return ::listen(socket.get(), kWaiting) != 0 ? errno : 0;
}

int bound_port(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  std::uint16_t port = 0;  // at the same place in both families
  std::memcpy(&port, reinterpret_cast<const char*>(&address) + offsetof(sockaddr_in, sin_port), sizeof(port));
  return ntohs(port);
}

bool is_loopback(const addrinfo& address) {
  if (address.ai_family == AF_INET) {
    sockaddr_in ip{};
    std::memcpy(&ip, address.ai_addr, sizeof(ip));
    return (ntohl(ip.sin_addr.s_addr) >> 24) == 127;
  }
  sockaddr_in6 ip{};
  std::memcpy(&ip, address.ai_addr, sizeof(ip));
  return IN6_IS_ADDR_LOOPBACK(&ip.sin6_addr) != 0;
}

// What lies there goes, where it is a socket on which nobody listens.
void make_way(const std::string& path, const sockaddr* address, socklen_t size) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;
  if (!S_ISSOCK(status.st_mode)) throw_refused(path + " exists and is no socket");
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), address, size) == 0) throw_refused(path + ": " + std::strerror(EADDRINUSE));
  ::unlink(path.c_str());
}

Listening listen_at_path(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    throw_refused(fmt::format("{}: a path of {} bytes; {} are allowed", path, path.size(),
                              sizeof(address.sun_path) - 1));
  path.copy(address.sun_path, path.size());
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  make_way(path, generic, sizeof(address));

  Listening listening{.sockets = {}, .port = 0, .path = path, .only_this_machine = true};
  auto socket = make_socket(AF_UNIX);
  // The mode of the socket is that of the file: nobody else can come in between.
  if (socket.get() >= 0) ::fchmod(socket.get(), kOwnerOnly);
  const int failed = bind_and_listen(socket, generic, sizeof(address), false);
  if (failed != 0) throw_refused(fmt::format("{}: {}", path, std::strerror(failed)));
  ::chmod(path.c_str(), kOwnerOnly);
  listening.sockets.push_back(std::move(socket));
  return listening;
}

/// Every interface, of both families where this machine has both.
Listening listen_everywhere(int port) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(static_cast<std::uint16_t>(port));
  auto socket = make_socket(AF_INET6);
  int failed = bind_and_listen(socket, reinterpret_cast<const sockaddr*>(&six), sizeof(six), true);
  if (failed == EAFNOSUPPORT || failed == EADDRNOTAVAIL) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = six.sin6_port;
    socket = make_socket(AF_INET);
    failed = bind_and_listen(socket, reinterpret_cast<const sockaddr*>(&four), sizeof(four), false);
  }
  if (failed != 0) throw_refused(fmt::format("every interface, port {}: {}", port, std::strerror(failed)));
  Listening listening{.sockets = {}, .port = bound_port(socket), .path = "", .only_this_machine = false};
  listening.sockets.push_back(std::move(socket));
  return listening;
}

}  // namespace

Listening listen_at(const std::string& address, const std::string& bind_address) {
  const TaskAddress own = task_address_of(address);
  if (!own.path.empty()) return listen_at_path(own.path);
  if (bind_address == "0.0.0.0" || bind_address == "::") return listen_everywhere(own.port);
  std::string host = bind_address.empty() ? own.host : bind_address;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);

  Listening listening{.sockets = {}, .port = 0, .path = "", .only_this_machine = true};
  const Addresses found = look_up(host, own.port);
  for (const addrinfo* entry = found.get(); entry != nullptr; entry = entry->ai_next) {
    auto socket = make_socket(entry->ai_family);
    const int failed = bind_and_listen(socket, entry->ai_addr, entry->ai_addrlen, false);
    if (failed == EADDRNOTAVAIL || failed == EAFNOSUPPORT) continue;
    if (failed != 0)
      throw_refused(fmt::format("{} port {}: {}", numeric(*entry), own.port, std::strerror(failed)));
    listening.only_this_machine = listening.only_this_machine && is_loopback(*entry);
    listening.port = bound_port(socket);
    listening.sockets.push_back(std::move(socket));
    if (own.port == 0) break;  // several would get several ports
  }
  if (listening.sockets.empty())
    throw_refused(fmt::format("{} is no address of this machine; give bind_address", host));
  return listening;
}

}  // namespace kolo::detail
