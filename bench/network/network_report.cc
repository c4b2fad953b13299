#include <bench/network/network_report.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include <kolo/collectives/transport/topology.h>
#include <kolo/core/base/json_text.h>

namespace kolo::bench {
namespace {

using nlohmann::json;

const NetworkHost* find_host(const NetworkReport& report, const std::string& name) {
  const auto found = std::find_if(report.hosts.begin(), report.hosts.end(),
                                  [&](const NetworkHost& host) { return host.name == name; });
  return found == report.hosts.end() ? nullptr : &*found;
}

const RdmaDevice* find_rdma(const NetworkHost* host, const std::string& name) {
  if (host == nullptr) return nullptr;
  for (const RdmaDevice& device : host->rdma)
    if (device.name == name) return &device;
  return nullptr;
}

int speed_of(const NetworkHost* host, const std::string& name) {
  if (host == nullptr) return 0;
  for (const NetworkInterface& interface : host->interfaces)
    if (interface.name == name) return interface.mbit_per_s;
  return 0;
}

// Those that have carried a part of the bytes worth naming.
std::vector<std::string> carriers(const NetworkLink& link) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : link.counted)
    if (bytes >= link.sent / 20 && link.sent > 0) names.push_back(name);
  return names;
}

bool uses_tcp(const NetworkLink& link, const NetworkReport& report) {
  return transport_of(link, report).rfind("TCP", 0) == 0;
}

// Of both hosts a name and a speed in Mbit/s: the fastest interface beyond those that the link uses.
NetworkInterface faster_interface(const NetworkLink& link, const NetworkReport& report) {
  const NetworkHost *from = find_host(report, link.from), *to = find_host(report, link.to);
  int used = 0;
  for (const std::string& name : carriers(link)) used += speed_of(from, name);
  NetworkInterface best{"", used};
  if (from == nullptr || used == 0) return best;
  for (const NetworkInterface& candidate : from->interfaces)
    if (candidate.mbit_per_s > best.mbit_per_s && speed_of(to, candidate.name) > used) best = candidate;
  return best;
}

std::string speed_text(int mbit_per_s) {
  return mbit_per_s % 1000 == 0 ? fmt::format("{} Gbit/s", mbit_per_s / 1000)
                                : fmt::format("{} Mbit/s", mbit_per_s);
}

LinkCost slowest_of(const std::vector<NetworkLink>& links, LinkCost unmeasured) {
  if (links.empty()) return unmeasured;
  LinkCost slowest = links[0].cost;
  for (const NetworkLink& link : links) {
    slowest.latency_s = std::max(slowest.latency_s, link.cost.latency_s);
    slowest.seconds_per_byte = std::max(slowest.seconds_per_byte, link.cost.seconds_per_byte);
  }
  return slowest;
}

Topology topology_of(const std::vector<NetworkHost>& hosts) {
  std::vector<int> leaders;
  for (const NetworkHost& host : hosts)
    leaders.insert(leaders.end(), static_cast<size_t>(host.ranks), static_cast<int>(leaders.size()));
  return Topology(leaders);
}

}  // namespace

std::string host_text(const NetworkHost& host, const std::vector<NetworkLink>& links) {
  json text = {{"host", host.name}, {"ranks", host.ranks}, {"links", json::array()}};
  for (const NetworkInterface& interface : host.interfaces)
    text["interfaces"].push_back({interface.name, interface.mbit_per_s});
  for (const RdmaDevice& device : host.rdma)
    text["rdma"].push_back({device.name, device.link_layer, device.rate});
  for (const NetworkLink& link : links)
    text["links"].push_back(
        {link.to, link.cost.latency_s, link.cost.seconds_per_byte, link.sent, link.counted});
  return json_text(text);
}

void add_host(NetworkReport& report, const std::string& text) {
  const json told = json::parse(text);
  NetworkHost& host = report.hosts.emplace_back(NetworkHost{told.at("host"), told.at("ranks"), {}, {}});
  for (const json& entry : told.value("interfaces", json::array()))
    host.interfaces.push_back({entry.at(0), entry.at(1)});
  for (const json& entry : told.value("rdma", json::array()))
    host.rdma.push_back({entry.at(0), entry.at(1), entry.at(2)});
  for (const json& entry : told.at("links")) {
    const NetworkLink link{host.name, entry.at(0), {entry.at(1), entry.at(2)}, entry.at(3), entry.at(4)};
    (link.from == link.to ? report.inside : report.between).push_back(link);
  }
}

std::string transport_of(const NetworkLink& link, const NetworkReport& report) {
  const NetworkHost* host = find_host(report, link.from);
  std::vector<std::string> parts, interfaces;
  for (const std::string& name : carriers(link)) {
    const RdmaDevice* device = find_rdma(host, name);
    if (device == nullptr) interfaces.push_back(name);
    else
      parts.push_back(fmt::format("{} {}", device->link_layer == "InfiniBand" ? "InfiniBand" : "RoCE", name));
  }
  if (!interfaces.empty()) parts.push_back(fmt::format("TCP over {}", fmt::join(interfaces, ", ")));
  if (!parts.empty()) return fmt::format("{}", fmt::join(parts, " and "));
  return link.from == link.to ? "shared memory" : "a transport that no interface counts";
}

std::vector<std::string> network_warnings(const NetworkReport& report) {
  std::set<std::string> warnings;
  for (const NetworkLink& link : report.inside)
    if (uses_tcp(link, report))
      warnings.insert(fmt::format(
          "ranks on {} talk {} although they share memory; does an option of MPI, as btl or pml, leave out "
          "its shared-memory transport?",
          link.from, transport_of(link, report)));
  for (const NetworkLink& link : report.between) {
    if (!uses_tcp(link, report)) continue;
    const std::string used = transport_of(link, report);
    const NetworkHost *from = find_host(report, link.from), *to = find_host(report, link.to);
    if (from != nullptr && to != nullptr && !from->rdma.empty() && !to->rdma.empty()) {
      const RdmaDevice& device = from->rdma.front();
      warnings.insert(
          fmt::format("{} and {} talk {} although {} ({}, {}) is active; MPI needs UCX or libfabric for it, "
                      "as with --mpi-args \"--mca "
                      "pml ucx\"",
                      link.from, link.to, used, device.name,
                      device.link_layer == "InfiniBand" ? "InfiniBand" : "RoCE", device.rate));
    } else if (const NetworkInterface faster = faster_interface(link, report); !faster.name.empty()) {
      warnings.insert(
          fmt::format("{} and {} talk {} although {} ({}) is up on both; --mpi-args \"--mca "
                      "btl_tcp_if_include {}\" chooses it",
                      link.from, link.to, used, faster.name, speed_text(faster.mbit_per_s), faster.name));
    }
  }
  return {warnings.begin(), warnings.end()};
}

Scaling expected_scaling(const NetworkReport& report, const ScalingQuestion& question) {
  const Topology topology = topology_of(report.hosts);
  Scaling scaling;
  if (topology.ranks() < 2) return scaling;
  CostModel costs;
  costs.inside = slowest_of(report.inside, costs.inside);
  costs.between = slowest_of(report.between, costs.between);
  costs.seconds_per_reduced_byte = report.seconds_per_reduced_byte;
  scaling.algorithm = fastest_allreduce(costs, topology, question.gradient_bytes);
  scaling.reduce_ms = 1e3 * predicted_seconds(costs, scaling.algorithm, topology, question.gradient_bytes);
  scaling.plain_efficiency = question.step_ms / (question.step_ms + scaling.reduce_ms);
  scaling.hidden_efficiency = question.step_ms / std::max(question.step_ms, scaling.reduce_ms);
  return scaling;
}

std::string network_json(const NetworkReport& report, const ScalingQuestion& question) {
  const auto links_json = [&](const std::vector<NetworkLink>& links) {
    auto list = nlohmann::ordered_json::array();
    for (const NetworkLink& link : links)
      list.push_back({{"from", link.from},
                      {"to", link.to},
                      {"transport", transport_of(link, report)},
                      {"GBps", 1e-9 / link.cost.seconds_per_byte},
                      {"latency_us", 1e6 * link.cost.latency_s}});
    return list;
  };
  auto hosts = nlohmann::ordered_json::array();
  for (const NetworkHost& host : report.hosts) hosts.push_back({{"host", host.name}, {"ranks", host.ranks}});
  const Scaling scaling = expected_scaling(report, question);
  return json_text(nlohmann::ordered_json{{"event", "network"},
                                          {"hosts", hosts},
                                          {"between", links_json(report.between)},
                                          {"inside", links_json(report.inside)},
                                          {"gradient_bytes", question.gradient_bytes},
                                          {"step_ms", question.step_ms},
                                          {"algorithm", scaling.algorithm},
                                          {"reduce_ms", scaling.reduce_ms},
                                          {"efficiency", scaling.plain_efficiency},
                                          {"efficiency_overlapped", scaling.hidden_efficiency},
                                          {"warnings", network_warnings(report)}});
}

}  // namespace kolo::bench
