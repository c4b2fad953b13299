#include <kolo/core/base/free_ports.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <kolo/core/base/error.h>

namespace kolo {

FreePorts::FreePorts(int count) {
  for (int i = 0; i < count; ++i) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (socket >= 0) sockets_.push_back(socket);
    if (socket < 0 || ::bind(socket, generic, size) != 0 || ::getsockname(socket, generic, &size) != 0) {
      const int reason = errno;
      for (const int held : sockets_) ::close(held);
      throw UnavailableError("no free port on 127.0.0.1: {}", std::strerror(reason));
    }
    ports_.push_back(ntohs(address.sin_port));
  }
}

FreePorts::~FreePorts() {
  for (const int socket : sockets_) ::close(socket);
}

}  // namespace kolo
