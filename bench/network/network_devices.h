// The network interfaces and RDMA devices of this host, as Linux shows them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <bench/network/network_report.h>

namespace kolo::bench {

/// Up and able to carry a job's traffic: no loopback, no bridge, no part of a bond. `net` is /sys/class/net.
/// Whether they have an address is for the caller to know.
std::vector<NetworkInterface> find_interfaces(const std::string& net);

/// With an active port. `infiniband` is /sys/class/infiniband, which need not exist.
std::vector<RdmaDevice> find_rdma_devices(const std::string& infiniband);

/// Bytes that have left through each interface (`dev` is /proc/net/dev) and each active RDMA device.
std::map<std::string, std::int64_t> sent_bytes(const std::string& dev, const std::string& infiniband);

}  // namespace kolo::bench
