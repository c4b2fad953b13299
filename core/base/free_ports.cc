#include <kolo/core/base/free_ports.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

constexpr int kLowest = 10'000;  // below it are ports of well-known services
constexpr int kOfOneProcess = 32, kMostTries = 20'000;

/// Of the ports that the system gives to connections, the lowest.
int lowest_of_connections() {
  int lowest = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> lowest;
  return lowest;
}

/// The next port to try: first those of this process, since processes that live at the same time have
/// different numbers. 0, any that the system has, where it keeps none back from connections.
int next_candidate() {
  static const int range = lowest_of_connections() - kLowest;
  static std::atomic<std::uint32_t> next{static_cast<std::uint32_t>(getpid()) * kOfOneProcess};
  return range < 1 ? 0 : kLowest + static_cast<int>(next++ % static_cast<std::uint32_t>(range));
}

/// Binds the socket to one of them and returns it; below 0, with errno, where there is none.
int bind_to_free_port(int socket) {
  for (int tries = 0; tries < kMostTries; ++tries) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(next_candidate()));
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket, generic, size) == 0 && ::getsockname(socket, generic, &size) == 0)
      return ntohs(address.sin_port);
    if (errno != EADDRINUSE) break;
  }
  return -1;
}

}  // namespace

FreePorts::FreePorts(int count) {
  for (int i = 0; i < count; ++i) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket >= 0) sockets_.push_back(socket);
    const int port = socket < 0 ? -1 : bind_to_free_port(socket);
    if (port < 0) {
      const int reason = errno;
      for (const int held : sockets_) ::close(held);
      throw UnavailableError("no free port on 127.0.0.1: {}", std::strerror(reason));
    }
    ports_.push_back(port);
  }
}

FreePorts::~FreePorts() {
  for (const int socket : sockets_) ::close(socket);
}

}  // namespace kolo
