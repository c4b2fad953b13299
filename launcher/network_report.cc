#include <kolo/launcher/network_report.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>

namespace kolo::launcher {
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

NetworkHost parse_host(const json& text) {
  NetworkHost host{text.at("host"), text.at("ranks"), {}, {}};
  for (const json& entry : text.at("interfaces"))
    host.interfaces.push_back({entry.at("name"), entry.at("mbit_per_s")});
  for (const json& entry : text.at("rdma"))
    host.rdma.push_back({entry.at("name"), entry.at("link_layer"), entry.at("rate")});
  return host;
}

NetworkLink parse_link(const json& text, const std::string& from) {
  return {from,
          text.at("to"),
          text.at("latency_us"),
          text.at("bytes_per_s"),
          text.at("sent"),
          text.at("counted")};
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

std::string pair_text(const NetworkLink& link) {
  return link.from == link.to ? fmt::format("on {}", link.from) : fmt::format("{} - {}", link.from, link.to);
}

std::string link_line(const NetworkLink& link, const NetworkReport& report) {
  return fmt::format("{}: {}, {:.3g} GB/s in each direction, {:.1f} us", pair_text(link),
                     transport_of(link, report), link.bytes_per_s / 1e9, link.latency_us);
}

double slowest_of(const std::vector<NetworkLink>& links) {
  double slowest = INFINITY;
  for (const NetworkLink& link : links) slowest = std::min(slowest, link.bytes_per_s);
  return slowest;
}

double longest_latency_s(const std::vector<NetworkLink>& links) {
  double longest = 0;
  for (const NetworkLink& link : links) longest = std::max(longest, link.latency_us / 1e6);
  return longest;
}

double ring_seconds(int n, const std::vector<NetworkLink>& links, double bytes) {
  if (n < 2 || links.empty()) return 0;
  return 2.0 * (n - 1) * longest_latency_s(links) + 2.0 * (n - 1) / n * bytes / slowest_of(links);
}

}  // namespace

NetworkReport parse_network_report(std::string_view lines) {
  NetworkReport report;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const json text = json::parse(line.begin(), line.end(), nullptr, false);
    if (!text.is_object() || !text.contains("interfaces")) continue;
    const NetworkHost& host = report.hosts.emplace_back(parse_host(text));
    for (const json& entry : text.at("links")) {
      const NetworkLink link = parse_link(entry, host.name);
      (link.from == link.to ? report.inside : report.between).push_back(link);
    }
  }
  if (report.hosts.empty()) throw DataLossError("the network probe has printed no measurement");
  return report;
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
  int most_local = 1;
  for (const NetworkHost& host : report.hosts) most_local = std::max(most_local, host.ranks);
  const auto bytes = static_cast<double>(question.gradient_bytes);
  const double seconds = ring_seconds(static_cast<int>(report.hosts.size()), report.between, bytes) +
                         ring_seconds(most_local, report.inside, bytes);
  Scaling scaling;
  scaling.reduce_ms = seconds * 1e3;
  scaling.plain_efficiency = question.step_ms / (question.step_ms + scaling.reduce_ms);
  scaling.hidden_efficiency = question.step_ms / std::max(question.step_ms, scaling.reduce_ms);
  return scaling;
}

std::vector<std::string> network_lines(const NetworkReport& report, const ScalingQuestion& question) {
  std::vector<std::string> lines;
  for (const auto* links : {&report.between, &report.inside})
    for (const NetworkLink& link : *links) lines.push_back(link_line(link, report));
  if (lines.empty()) return {"one rank: there is no network to measure"};
  const Scaling scaling = expected_scaling(report, question);
  lines.push_back(
      fmt::format("to expect: {:.1f} MiB of gradients are reduced in {:.3g} ms; steps that compute for "
                  "{:.3g} ms scale with {:.0f} %, "
                  "with {:.0f} % where the backward pass hides it",
                  static_cast<double>(question.gradient_bytes) / (1 << 20), scaling.reduce_ms,
                  question.step_ms, 100 * scaling.plain_efficiency, 100 * scaling.hidden_efficiency));
  for (const std::string& warning : network_warnings(report)) lines.push_back("warning: " + warning);
  return lines;
}

std::string network_json(const NetworkReport& report, const ScalingQuestion& question) {
  const auto links_json = [&](const std::vector<NetworkLink>& links) {
    auto list = nlohmann::ordered_json::array();
    for (const NetworkLink& link : links)
      list.push_back({{"from", link.from},
                      {"to", link.to},
                      {"transport", transport_of(link, report)},
                      {"GBps", link.bytes_per_s / 1e9},
                      {"latency_us", link.latency_us}});
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
                                          {"reduce_ms", scaling.reduce_ms},
                                          {"efficiency", scaling.plain_efficiency},
                                          {"efficiency_overlapped", scaling.hidden_efficiency},
                                          {"warnings", network_warnings(report)}});
}

}  // namespace kolo::launcher
