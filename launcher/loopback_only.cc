// Loaded into mpirun, and nothing else, where all ranks of a job are on this machine: what it would listen on
// at every address it listens on at loopback. Open MPI 4 has no setting for it: oob_tcp_if_include chooses
// which addresses it tells others, and binds all.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using Bind = int (*)(int, const sockaddr*, socklen_t);

// Its own name goes, so that ranks do not load it: they may listen where they like.
[[gnu::constructor]] void leave_the_environment() {
  const char* const before = std::getenv("LD_PRELOAD");
  if (before == nullptr) return;
  const std::string all = before;
  const std::size_t end = all.find(':');
  if (end == std::string::npos) ::unsetenv("LD_PRELOAD");
  else ::setenv("LD_PRELOAD", all.c_str() + end + 1, 1);
}

template <typename Address>
Address copied(const sockaddr* address) {
  Address copy{};
  std::memcpy(&copy, address, sizeof(copy));
  return copy;
}

template <typename Address>
int bind_to(Bind real, int socket, const Address& address) {
  return real(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

}  // namespace

extern "C" int bind(int socket, const sockaddr* address, socklen_t size) noexcept {
  static const auto real = reinterpret_cast<Bind>(::dlsym(RTLD_NEXT, "bind"));
  if (address->sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
    auto four = copied<sockaddr_in>(address);
    if (four.sin_addr.s_addr == htonl(INADDR_ANY)) four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return bind_to(real, socket, four);
  }
  if (address->sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    auto six = copied<sockaddr_in6>(address);
    if (IN6_IS_ADDR_UNSPECIFIED(&six.sin6_addr)) six.sin6_addr = in6addr_loopback;
    return bind_to(real, socket, six);
  }
  return real(socket, address, size);
}
