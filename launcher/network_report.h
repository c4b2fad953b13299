// What kolorun --check-network tells: from the measurements of kolo-network-probe to transports, warnings and
// the scaling to expect. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::launcher {

struct NetworkInterface {
  std::string name;
  int mbit_per_s = 0;  // 0: it does not tell
};

struct RdmaDevice {
  std::string name;        // of an active port
  std::string link_layer;  // InfiniBand, or Ethernet (RoCE)
  std::string rate;        // as the system writes it: 200 Gb/sec (4X HDR)
};

/// A pair of ranks that has measured, seen from one of them.
struct NetworkLink {
  std::string from, to;  // hosts; the same one for ranks that share memory
  double latency_us = 0;
  double bytes_per_s = 0;                       // in each direction, both at once
  std::int64_t sent = 0;                        // bytes, by this side
  std::map<std::string, std::int64_t> counted;  // bytes that left through each interface and device meanwhile
};

struct NetworkHost {
  std::string name;
  int ranks = 0;
  std::vector<NetworkInterface> interfaces;  // up, with an address, without loopback
  std::vector<RdmaDevice> rdma;
};

struct NetworkReport {
  std::vector<NetworkHost> hosts;
  std::vector<NetworkLink> between, inside;
};

/// What the scaling is computed for.
struct ScalingQuestion {
  std::int64_t gradient_bytes = 102228128;  // ResNet-50 in f32
  double step_ms = 250;                     // computing in a step
};

struct Scaling {
  double reduce_ms = 0;          // an allreduce of all gradients, alone
  double plain_efficiency = 1;   // nothing is overlapped
  double hidden_efficiency = 1;  // all that can be is hidden behind the computing
};

/// From the JSON lines of the probe; others are left out. Throws DataLossError unless a measurement is there.
NetworkReport parse_network_report(std::string_view lines);

/// `shared memory`, `TCP over eth0`, `InfiniBand mlx5_0`, `RoCE mlx5_0`: where the bytes were counted.
std::string transport_of(const NetworkLink& link, const NetworkReport& report);

/// A sentence for each link that is slower than what is there would allow.
std::vector<std::string> network_warnings(const NetworkReport& report);

/// By the α–β model over the slowest link of each kind: 2(n−1) messages and 2(n−1)/n of the bytes, inside of
/// a host and between hosts.
Scaling expected_scaling(const NetworkReport& report, const ScalingQuestion& question);

/// For people: a line for each link, the scaling, the warnings.
std::vector<std::string> network_lines(const NetworkReport& report, const ScalingQuestion& question);
/// One JSON object.
std::string network_json(const NetworkReport& report, const ScalingQuestion& question);

}  // namespace kolo::launcher
