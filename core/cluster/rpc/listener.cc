#include <kolo/core/cluster/rpc/listener.h>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
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

class Socket {
 public:
  explicit Socket(int family) : descriptor_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

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

/// 0, or errno.
int try_to_bind(const addrinfo& address) {
  const Socket socket(address.ai_family);
  if (socket.get() < 0) return errno;
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0) return errno;
  return ::listen(socket.get(), 1) != 0 ? errno : 0;
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

ListenPlan plan_path(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    throw_refused(fmt::format("{}: a path of {} bytes; {} are allowed", path, path.size(),
                              sizeof(address.sun_path) - 1));
  path.copy(address.sun_path, path.size());
  // gRPC unlinks what lies there: only what nobody listens on may go.
  const Socket socket(AF_UNIX);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
    throw_refused(path + ": " + std::strerror(EADDRINUSE));
  return {.targets = {"unix:" + path}, .path = path, .only_this_machine = true};
}

}  // namespace

ListenPlan plan_listening(const std::string& address, const std::string& bind_address) {
  const TaskAddress own = task_address_of(address);
  if (!own.path.empty()) return plan_path(own.path);
  const bool everywhere = bind_address == "0.0.0.0" || bind_address == "::";
  std::string host = bind_address.empty() ? own.host : bind_address;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);

  ListenPlan plan{.targets = {}, .path = "", .only_this_machine = true};
  const Addresses found = look_up(host, own.port);
  for (const addrinfo* entry = found.get(); entry != nullptr; entry = entry->ai_next) {
    const int failed = try_to_bind(*entry);
    if (failed == EADDRNOTAVAIL || failed == EAFNOSUPPORT) continue;
    const std::string ip = numeric(*entry);
    if (failed != 0) throw_refused(fmt::format("{} port {}: {}", ip, own.port, std::strerror(failed)));
    plan.only_this_machine = plan.only_this_machine && !everywhere && is_loopback(*entry);
    const bool six = entry->ai_family == AF_INET6;
    plan.targets.push_back(fmt::format("{}{}{}:{}", six ? "[" : "", ip, six ? "]" : "", own.port));
    if (own.port == 0 || everywhere) break;  // several would get several ports; gRPC takes both families
  }
  if (plan.targets.empty())
    throw_refused(fmt::format("{} is no address of this machine; give bind_address", host));
  return plan;
}

}  // namespace kolo::detail
