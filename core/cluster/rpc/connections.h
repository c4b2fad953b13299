// The connections of a server: accepted, counted and cut here, since the transport bounds neither them nor
// what strangers may cost.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/rpc/limits.h>
#include <kolo/core/cluster/rpc/listener.h>

#include <kolo/core/cluster/rpc/transport_internal.h>

namespace kolo::detail {

/// What the transport says of calls.
struct CallCounts {
  std::int64_t begun = 0;  // since the server's start
  std::int64_t unseen =
      0;  // not handed over yet, refused and not let go yet, and those whose end it has missed
};

/// A connection is a stranger until a call on it was accepted. Strangers make way for newer ones, the oldest
/// first, so that many idle ones keep nobody out. One that sends much, or whose calls are refused again and
/// again, is cut.
/// Each connection has a second descriptor here: it tells when the transport has let go, and can cut.
/// Any thread; connections come in on one of its own.
class Connections {
 public:
  /// adopt: owns the descriptor of a connection from then on. limits: resolved. Throws UnknownError where the
  /// kernel refuses.
  Connections(Listening listening, const RpcLimits& limits, std::string task,
              std::function<void(int listener, int connection)> adopt, std::function<CallCounts()> calls);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  /// Once. What came before waits in the kernel.
  void start();
  /// Nobody comes in any more, and the port is free. Connections that stand stay the transport's. One thread.
  void stop();
  /// peer: as the transport names it, `ipv4:127.0.0.1:4711`.
  void call_accepted(const std::string& peer) KOLO_EXCLUDES(mutex_);
  /// One too many cuts the connection.
  void call_refused(const std::string& peer) KOLO_EXCLUDES(mutex_);

 private:
  using Id = std::uint64_t;  // later ones are larger
  struct Connection {
    Descriptor second;
    std::string peer, host;
    bool is_stranger = true;
    int refused = 0;
  };
  struct Counts {
    std::size_t all = 0, strangers = 0;
  };

  void serve();
  void give_back_memory();
  void wait_until_calls_are_seen() KOLO_EXCLUDES(mutex_);
  void accept_some(const Descriptor& listener);
  void tell_no_descriptor();
  void drop_one(const Descriptor& listener);
  void admit(const Descriptor& listener, Descriptor connection) KOLO_EXCLUDES(mutex_);
  bool make_place(const std::string& host) KOLO_REQUIRES(mutex_);
  bool cut_oldest_stranger(const std::string& host) KOLO_REQUIRES(mutex_);
  void check_bytes(Id id, std::uint64_t most) KOLO_REQUIRES(mutex_);
  void cut(Id id) KOLO_REQUIRES(mutex_);
  void forget(Id id) KOLO_REQUIRES(mutex_);
  Connection* find(const std::string& peer) KOLO_REQUIRES(mutex_);

  Listening listening_;
  const std::size_t most_, most_of_host_, most_strangers_;
  const std::uint64_t most_stranger_bytes_;
  const int most_refused_;
  const std::int64_t most_unseen_;
  const std::uint64_t greeting_bytes_;
  const std::string task_;
  const std::function<void(int listener, int connection)> adopt_;
  const std::function<CallCounts()> calls_;
  std::atomic<std::int64_t> accepted_{0};  // calls
  Descriptor events_, end_, spare_;
  std::atomic<bool> has_cut_{false};
  OncePer trimmed_{std::chrono::seconds(2)};
  std::int64_t never_seen_ = 0;  // of the unseen calls; the accepting thread's own
  OncePer told_full_{std::chrono::seconds(60)}, told_no_descriptor_{std::chrono::seconds(60)};

  Mutex mutex_;
  Id last_id_ KOLO_GUARDED_BY(mutex_) = 0;
  std::map<Id, Connection> connections_ KOLO_GUARDED_BY(mutex_);
  std::set<Id> strangers_ KOLO_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Id> by_peer_ KOLO_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Counts> by_host_ KOLO_GUARDED_BY(mutex_);
  std::thread thread_;
};

/// How many a server may have with the files that this process may have open, at most 16384. Raises the soft
/// limit of open files as far as the hard one allows, to 65536.
std::size_t affordable_connections();

}  // namespace kolo::detail
