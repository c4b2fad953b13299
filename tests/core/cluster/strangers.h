// What a stranger does to a port below the level of calls: connections that are silent, and streams of HTTP/2
// that are reset as soon as they are opened.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace kolo {

/// Connections to a port of this machine's loopback, from an address of it.
class RawConnections {
 public:
  RawConnections() = default;
  ~RawConnections() {
    for (const int descriptor : descriptors_) ::close(descriptor);
  }
  RawConnections(const RawConnections&) = delete;
  RawConnections& operator=(const RawConnections&) = delete;

  /// from: 127.0.0.0/8. The descriptor, which this owns; -1 where nobody took it.
  int add(int port, const char* from = "127.0.0.1") {
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -1;
    descriptors_.push_back(descriptor);
    const timeval patience{5, 0};
    ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    const sockaddr_in own = at(from, 0), to = at("127.0.0.1", port);
    const bool connected = ::bind(descriptor, reinterpret_cast<const sockaddr*>(&own), sizeof(own)) == 0 &&
                           ::connect(descriptor, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
    return connected ? descriptor : -1;
  }
  /// How many the other end has not closed yet.
  std::size_t open() const {
    std::size_t open = 0;
    for (const int descriptor : descriptors_) {
      char bytes[4096];
      ssize_t got = 1;
      while (got > 0) got = ::recv(descriptor, bytes, sizeof(bytes), MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) ++open;
    }
    return open;
  }

 private:
  static sockaddr_in at(const char* host, int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    ::inet_pton(AF_INET, host, &address.sin_addr);
    return address;
  }
  std::vector<int> descriptors_;
};

/// A frame of HTTP/2, RFC 9113.
inline std::string http2_frame(char type, char flags, std::uint32_t stream, const std::string& payload) {
  const auto number = [](std::uint32_t value, int bytes) {
    std::string text;
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
    return text;
  };
  return number(static_cast<std::uint32_t>(payload.size()), 3) + type + flags + number(stream, 4) + payload;
}

inline std::string http2_preface() { return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + http2_frame(4, 0, 0, ""); }

/// Calls of GetStatus without a token, each reset behind its headers. first: of its connection; the later
/// ones' headers are indices of HPACK, 32 bytes in all.
inline std::string reset_calls(std::uint32_t first_stream, int calls) {
  const auto literal = [](char index, const std::string& value) {
    return std::string(1, index) + static_cast<char>(value.size()) + value;
  };
  const std::string whole = "\x83\x86" + literal('\x44', "/kolo.cluster.WorkerService/GetStatus") +
                            literal('\x41', "localhost") + literal('\x5f', "application/grpc") + "\x40" +
                            std::string("\x02te\x08trailers");
  const std::string indices = "\x83\x86\xc1\xc0\xbf\xbe";
  std::string bytes;
  for (int i = 0; i < calls; ++i) {
    const std::uint32_t stream = first_stream + 2 * static_cast<std::uint32_t>(i);
    bytes += http2_frame(1, 4 | 1, stream, stream == 1 ? whole : indices);
    bytes += http2_frame(3, 0, stream, std::string("\0\0\0\x08", 4));
  }
  return bytes;
}

/// As many as the server takes until it ends the connection, at most `calls`; how many were sent.
inline int flood_with_resets(int port, int calls) {
  constexpr int kAtOnce = 500;
  RawConnections connections;
  const int descriptor = connections.add(port);
  const auto send_all = [&](const std::string& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t count = ::send(descriptor, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return false;
      sent += static_cast<std::size_t>(count);
    }
    return true;
  };
  if (descriptor < 0 || !send_all(http2_preface())) return 0;
  int done = 0;
  while (done < calls && send_all(reset_calls(1 + 2 * static_cast<std::uint32_t>(done), kAtOnce)))
    done += kAtOnce;
  return done;
}

}  // namespace kolo
