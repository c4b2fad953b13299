// The ports of FreePorts can be bound, differ, and are none that the system gives to a connection.
#include <kolo/core/base/free_ports.h>

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <set>

namespace kolo {
namespace {

using ::testing::Lt;

/// A socket that listens on a port of the loopback interface.
class Listener {
 public:
  explicit Listener(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    listens_ = ::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
               ::listen(socket_, 1) == 0;
  }
  ~Listener() { ::close(socket_); }
  bool listens() const { return listens_; }

 private:
  int socket_;
  bool listens_ = false;
};

TEST(FreePorts, DifferAndAreHeldUntilTheObjectEnds) {
  std::set<int> ports;
  {
    const FreePorts held(20);
    for (int i = 0; i < 20; ++i) {
      ports.insert(held[i]);
      EXPECT_FALSE(Listener(held[i]).listens());
    }
  }
  EXPECT_EQ(ports.size(), 20);
  for (const int port : ports) EXPECT_TRUE(Listener(port).listens()) << port;
}

// A connection that another program opens between the choice and the start of a server takes none of them.
TEST(FreePorts, AreNoneOfThoseForConnections) {
  int lowest = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> lowest;
  if (lowest <= 10'000) GTEST_SKIP() << "this system keeps no ports back from connections";
  const FreePorts ports(40);
  for (int i = 0; i < 40; ++i) EXPECT_THAT(ports[i], Lt(lowest));
}

TEST(FreePorts, AreNotChosenAgainAndPassOverTakenOnes) {
  const int first = FreePorts(1)[0];
  const Listener taken(first + 1);
  const int next = FreePorts(1)[0];
  EXPECT_NE(next, first);
  EXPECT_NE(next, first + 1);
}

}  // namespace
}  // namespace kolo
