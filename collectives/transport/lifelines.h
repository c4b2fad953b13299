// Connections that carry nothing, and end when a process does.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

#include <kolo/core/base/mutex.h>

namespace kolo::detail {

/// The ranks of a job in a ring, each joined to the one before it (left) and the one behind it (right) by a
/// TCP connection. The system closes it when a process ends, however that happens, and finds by its keepalive
/// that a host is gone. Where none can be made, e.g. without IPv4, a neighbour is not looked after.
class Lifelines {
 public:
  /// What the left neighbour needs to find this rank. Sent as it stands.
  struct Address {
    std::array<std::uint32_t, 8> hosts{};  // IPv4, network order; 0: none
    std::uint16_t port = 0;
    std::array<std::uint64_t, 2> token{};
  };
  struct Held {
    bool left = false, right = false;
  };
  struct Lost {
    bool left = false, right = false;
    bool with_host = false;  // nothing was heard of one of them: its host, or the way to it, is gone
  };

  Lifelines();
  ~Lifelines();
  const Address& address() const { return address_; }
  /// Connects to the right neighbour and waits for the left one, which connects at the same time.
  void join(const Address& right, std::chrono::milliseconds within);
  /// The connections that have an end here. One that came too late for the other end is none.
  Held held() KOLO_EXCLUDES(mutex_);
  /// Gives up those of which a neighbour has no end. left: the left one's held().right, and the reverse.
  void agree(Held by_neighbours) KOLO_EXCLUDES(mutex_);
  /// Who has gone without a goodbye since the last look. Does not wait.
  Lost look() KOLO_EXCLUDES(mutex_);
  /// From then on a thread looks, and calls on_loss there as soon as somebody has gone. It says goodbye once
  /// SIGTERM has come: a process that mpirun ends is not what is wrong.
  void watch(std::function<void(Lost)> on_loss) KOLO_EXCLUDES(mutex_);
  /// This process is about to end, or to leave, by its own will. Any thread.
  void say_goodbye() KOLO_EXCLUDES(mutex_);

 private:
  class Socket {
   public:
    explicit Socket(int fd = -1) : fd_(fd) {}
    Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
      std::swap(fd_, other.fd_);
      return *this;
    }
    ~Socket();
    int fd() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

   private:
    int fd_;
  };
  struct Neighbour {
    Socket socket;
    bool watched = false;  // not after its goodbye; the connection stays, as its end would be taken for ours
  };
  class Joining;

  enum class State : std::uint8_t { there, ended, silent };

  static State look_at(Neighbour& neighbour);
  void wait(int milliseconds) KOLO_EXCLUDES(mutex_);

  Address address_;
  Socket listener_;
  Socket over_;  // readable when the thread is to end
  Mutex mutex_;
  Neighbour left_ KOLO_GUARDED_BY(mutex_), right_ KOLO_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace kolo::detail
