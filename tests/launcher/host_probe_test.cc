#include <kolo/launcher/host_probe.h>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <kolo/launcher/child.h>

namespace kolo::launcher {
namespace {

using testing::ElementsAre;
using testing::Pair;

struct Listener {
  OwnedFd fd;
  int port = 0;
};

// On 127.0.0.1; one that is closed again leaves a port on which nobody listens.
Listener listen_here() {
  Listener listener{OwnedFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(listener.fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener.fd.get(), 8), 0);
  EXPECT_EQ(getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  listener.port = ntohs(address.sin_port);
  return listener;
}

// Of each host why it does not answer.
std::map<std::string, std::string> look(const Agent& agent, const std::vector<Host>& hosts) {
  std::map<std::string, std::string> told;
  HostProbe(agent).look(hosts, true, [&](const Host& host, const std::string& why_not) {
    EXPECT_TRUE(told.emplace(host.name, why_not).second) << host.name << " is told twice";
  });
  return told;
}

TEST(HostProbe, TellsWhoseDaemonListensAndWhyAnotherDoesNot) {
  const Listener there = listen_here();
  const int closed = listen_here().port;
  const Agent agent{.port = closed,
                    .daemons = {{"node1", {"127.0.0.1", there.port}}, {"node2", {"127.0.0.1", closed}}},
                    .hostname = "node0"};
  EXPECT_THAT(look(agent, {{"node0"}, {"node1"}, {"node2"}}),
              ElementsAre(Pair("node0", ""), Pair("node1", ""), Pair("node2", "Connection refused")));
}

TEST(HostProbe, NamesWhatIsWrongWithAName) {
  const auto told = look({.port = 1, .hostname = "node0"}, {{"no.such.host.invalid"}});
  EXPECT_NE(told.at("no.such.host.invalid"), "");
}

TEST(HostProbe, RunsTrueOverAnotherAgentThanSsh) {
  const std::string agent = R"([ "$1 $2" = "good true" ] || { echo no route >&2; exit 3; })";
  const std::string silent = R"([ "$1" = good ])";
  EXPECT_THAT(look({.command = {"sh", "-c", agent, "agent"}}, {{"good"}, {"bad"}}),
              ElementsAre(Pair("bad", "no route"), Pair("good", "")));
  EXPECT_THAT(look({.command = {"sh", "-c", silent, "agent"}}, {{"good"}, {"bad"}}),
              ElementsAre(Pair("bad", "exit code 1"), Pair("good", "")));
}

// A name and a port of the user's ssh_config count; behind a proxy a connection would tell nothing.
TEST(HostProbe, AsksSshWhereAHostIs) {
  const Listener there = listen_here();
  const std::string folder = testing::TempDir() + "/probe";
  const std::string ssh = folder + "/ssh";
  ASSERT_EQ(std::system(("mkdir -p " + folder).c_str()), 0);
  const auto write_ssh = [&](const std::string& settings, const std::string& otherwise) {
    std::ofstream(ssh) << "#!/bin/sh\nif [ \"$1\" = -G ]; then printf '" << settings << "'; else "
                       << otherwise << "; fi\n";
    ASSERT_EQ(std::system(("chmod +x " + ssh).c_str()), 0);
  };
  write_ssh("hostname 127.0.0.1\\nport " + std::to_string(there.port) + "\\nproxycommand none\\n", "exit 1");
  EXPECT_THAT(look({.command = {ssh}}, {{"alias"}}), ElementsAre(Pair("alias", "")));
  write_ssh("hostname 127.0.0.1\\nport 1\\nproxyjump gate\\n", "[ \"$1 $2\" = \"alias true\" ]");
  EXPECT_THAT(look({.command = {ssh}}, {{"alias"}}), ElementsAre(Pair("alias", "")));
}

}  // namespace
}  // namespace kolo::launcher
