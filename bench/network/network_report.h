// What kolo-network-probe tells: from what the hosts have measured to transports, warnings and the scaling to
// expect. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <kolo/collectives/algorithms/cost_model.h>

namespace kolo::bench {

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
  LinkCost cost;
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
  double seconds_per_reduced_byte = CostModel().seconds_per_reduced_byte;  // of rank 0
};

/// What the scaling is computed for.
struct ScalingQuestion {
  std::int64_t gradient_bytes = 102228128;  // ResNet-50 in f32
  double step_ms = 250;                     // computing in a step
};

struct Scaling {
  std::string algorithm;         // of the allreduce; "": one rank
  double reduce_ms = 0;          // of all gradients, alone
  double plain_efficiency = 1;   // nothing is overlapped
  double hidden_efficiency = 1;  // all that can be is hidden behind the computing
};

/// What a host tells rank 0, as text: itself and the links that it has led.
std::string host_text(const NetworkHost& host, const std::vector<NetworkLink>& links);
/// Adds it to the report.
void add_host(NetworkReport& report, const std::string& text);

/// `shared memory`, `TCP over eth0`, `InfiniBand mlx5_0`, `RoCE mlx5_0`: where the bytes were counted.
std::string transport_of(const NetworkLink& link, const NetworkReport& report);

/// A sentence for each link that is slower than what is there would allow.
std::vector<std::string> network_warnings(const NetworkReport& report);

/// Of the algorithm over messages that the cost model takes to be fastest, over the slowest link of each
/// kind.
Scaling expected_scaling(const NetworkReport& report, const ScalingQuestion& question);

/// One JSON object, which kolorun reads (launcher/check_network.h) and prints.
std::string network_json(const NetworkReport& report, const ScalingQuestion& question);

}  // namespace kolo::bench
