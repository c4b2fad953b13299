// Whether hosts can start ranks now: a connection to what starts them there, or a command.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <kolo/launcher/hosts.h>

namespace kolo::launcher {

/// Where a daemon listens.
struct DaemonPlace {
  std::string name;  // of its host, or an address
  int port = 0;
};

/// How ranks come to other hosts.
struct Agent {
  std::vector<std::string> command =
      {};        // ssh, or another program, with its arguments in front of the host's name
  int port = 0;  // of a daemon that listens on each host, as slurmd; 0: it is the command that counts
  std::map<std::string, DaemonPlace> daemons = {};  // by the host's name; of others the name and `port`
  std::string hostname = {};                        // of this machine, which needs no agent
};

/// Asks hosts whether they are there. Where the agent is ssh, a connection to the port that `ssh -G` names
/// has to do; behind a proxy, and for another agent, the command `true` over it. One thread.
class HostProbe {
 public:
  /// why_not: in a few words; "" of a host that answers.
  using Told = std::function<void(const Host&, const std::string& why_not)>;

  explicit HostProbe(Agent agent) : agent_(std::move(agent)) {}
  /// All hosts at once: 1 s for a connection, 5 s for a command. `told` is called once for each host, as soon
  /// as it is known. looks_up: names that have not answered last time are looked up again, which can take
  /// longer than that.
  void look(const std::vector<Host>& hosts, bool looks_up, const Told& told);

 private:
  struct Address {
    std::string bytes;  // a sockaddr
  };
  struct Place {
    bool by_command = false;
    std::string name, port;
    std::vector<Address> addresses;
    bool answered = false;
    std::string why_not;  // of the last look
  };

  Place& place_of(const std::string& host);
  void connect_to(const std::vector<Host>& hosts, const Told& told);
  void run_commands(const std::vector<Host>& hosts, const Told& told);

  const Agent agent_;
  std::map<std::string, Place> places_;
};

}  // namespace kolo::launcher
