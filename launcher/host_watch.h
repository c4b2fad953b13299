// Which hosts are there, asked over and over while a job runs.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <kolo/launcher/child.h>
#include <kolo/launcher/host_pool.h>
#include <kolo/launcher/host_probe.h>

namespace kolo::launcher {

struct WatchPlan {
  std::vector<Host> listed;  // without `discover` the list; with it the first one, and where slots come from
  std::string discover;      // a command for sh that prints the hosts that are there; "": none
  std::optional<int> slots_per_host;  // of a host that `discover` prints without a number
  std::chrono::seconds every{5};
  std::chrono::seconds discover_limit{30};  // it is then ended, with all that it has started
  Agent agent;
};

/// A process of its own asks: a name or a command may take seconds, in which the job's output has to be
/// handed on. It ends with this object, and with this process. One thread.
class HostWatch {
 public:
  explicit HostWatch(WatchPlan plan);
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

  /// For poll: readable when read() has something to take. Below 0 if the process has ended.
  int fd() const { return from_.get(); }
  pid_t pid() const { return pid_; }

  /// Takes what has come; never waits. True if list() is new.
  bool read();
  /// All listed hosts, once each has been asked.
  const std::vector<SeenHost>& list() const { return list_; }
  /// What went wrong since the last call: a line for each.
  std::vector<std::string> take_warnings();

  /// Asks all hosts at once, and waits until each has answered but for those in `without`, or its time is
  /// over. False, and list() is as it was, after `limit`.
  bool look_now(const std::vector<std::string>& without, std::chrono::milliseconds limit);
  /// Nobody needs the answers now: no host is asked until the next look_now(). A connection that only looks
  /// leaves a line in the log of the daemon there.
  void rest();

 private:
  void start();
  void end();
  void take_line(const std::string& line);
  bool round_is_enough(const std::vector<std::string>& without) const;

  const WatchPlan plan_;
  pid_t pid_ = -1;
  OwnedFd from_, to_;
  std::string started_line_;
  int asked_ = 0;
  struct {
    int number = -1;    // of requests that it answers
    size_t listed = 0;  // hosts; some of their lines may still be on the way
    bool over = false;
    std::vector<SeenHost> hosts;
    std::vector<bool> told;
  } round_;
  std::vector<SeenHost> list_;
  bool list_is_new_ = false;
  std::vector<std::string> warnings_;
};

}  // namespace kolo::launcher
