// On folders made like those of Linux.
#include <bench/network/network_devices.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace kolo::bench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class Devices : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  void add_interface(const std::string& name, const std::string& carrier, const std::string& speed,
                     const std::string& type = "1") const {
    write("net/" + name + "/carrier", carrier);
    write("net/" + name + "/speed", speed);
    write("net/" + name + "/type", type);
  }
  void add_rdma(const std::string& name, const std::string& state) const {
    const std::string port = "infiniband/" + name + "/ports/1/";
    write(port + "state", state);
    write(port + "link_layer", "InfiniBand");
    write(port + "rate", "200 Gb/sec (4X HDR)");
    write(port + "counters/port_xmit_data", "250");
  }
  std::string path(const std::string& name) const { return root_ / name; }
  const std::filesystem::path root_ = testing::TempDir() + "network_devices_test";
};

TEST_F(Devices, AreInterfacesThatAreUp) {
  add_interface("eth0", "1", "1000");
  add_interface("eth1", "0", "10000");
  add_interface("eth2", "1", "-1");
  add_interface("lo", "1", "", "772");
  add_interface("docker0", "1", "10000");
  write("net/docker0/bridge/bridge_id", "8000");
  const auto found = find_interfaces(path("net"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "eth0");
  EXPECT_EQ(found[0].mbit_per_s, 1000);
  EXPECT_EQ(found[1].name, "eth2");
  EXPECT_EQ(found[1].mbit_per_s, 0);
}

TEST_F(Devices, AreRdmaDevicesWithAnActivePort) {
  EXPECT_THAT(find_rdma_devices(path("infiniband")), IsEmpty());
  add_rdma("mlx5_0", "4: ACTIVE");
  add_rdma("mlx5_1", "1: DOWN");
  const auto found = find_rdma_devices(path("infiniband"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "mlx5_0");
  EXPECT_EQ(found[0].link_layer, "InfiniBand");
  EXPECT_EQ(found[0].rate, "200 Gb/sec (4X HDR)");
}

TEST_F(Devices, CountWhatTheyHaveSent) {
  write("dev",
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo "
        "colls\n"
        "    lo: 100 1 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n"
        "  eth0:5000000000 1 0 0 0 0 0 0 6000000000 2 0 0 0 0 0 0");
  add_rdma("mlx5_0", "4: ACTIVE");
  EXPECT_THAT(sent_bytes(path("dev"), path("infiniband")),
              ElementsAre(Pair("eth0", 6000000000), Pair("lo", 200), Pair("mlx5_0", 1000)));
}

}  // namespace
}  // namespace kolo::bench
