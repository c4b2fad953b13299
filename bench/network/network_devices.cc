#include <bench/network/network_devices.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include <kolo/core/base/text.h>

namespace kolo::bench {
namespace {

namespace fs = std::filesystem;

// "" where it cannot be read: a down interface's speed gives an error.
std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    entries.push_back(entry->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// `4: ACTIVE`
std::vector<fs::path> active_ports(const fs::path& device) {
  std::vector<fs::path> ports;
  for (const fs::path& port : entries_of(device / "ports"))
    if (first_line(port / "state").find("ACTIVE") != std::string::npos) ports.push_back(port);
  return ports;
}

constexpr const char* kLoopback = "772";  // ARPHRD_LOOPBACK

}  // namespace

std::vector<NetworkInterface> find_interfaces(const std::string& net) {
  std::vector<NetworkInterface> found;
  for (const fs::path& entry : entries_of(net)) {
    const bool unusable = first_line(entry / "carrier") != "1" || first_line(entry / "type") == kLoopback ||
                          fs::exists(entry / "bridge") || fs::exists(entry / "master");
    if (unusable) continue;
    const auto speed = parse_int64(first_line(entry / "speed"));
    found.push_back({entry.filename(), speed && *speed > 0 ? static_cast<int>(*speed) : 0});
  }
  return found;
}

std::vector<RdmaDevice> find_rdma_devices(const std::string& infiniband) {
  std::vector<RdmaDevice> found;
  for (const fs::path& device : entries_of(infiniband))
    if (const auto ports = active_ports(device); !ports.empty())
      found.push_back(
          {device.filename(), first_line(ports[0] / "link_layer"), first_line(ports[0] / "rate")});
  return found;
}

std::map<std::string, std::int64_t> sent_bytes(const std::string& dev, const std::string& infiniband) {
  std::map<std::string, std::int64_t> sent;
  std::ifstream file(dev);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');  // `  eth0: 8 numbers received, 8 sent`, bytes first
    if (colon == std::string::npos) continue;
    std::istringstream numbers(line.substr(colon + 1));
    std::int64_t number = 0;
    for (int i = 0; i < 9; ++i) numbers >> number;
    const size_t start = line.find_first_not_of(' ');
    if (numbers) sent[line.substr(start, colon - start)] = number;
  }
  constexpr std::int64_t kBytesInAWord = 4;  // the counter's unit
  for (const fs::path& device : entries_of(infiniband))
    for (const fs::path& port : active_ports(device))
      if (const auto words = parse_int64(first_line(port / "counters" / "port_xmit_data")))
        sent[device.filename()] += *words * kBytesInAWord;
  return sent;
}

}  // namespace kolo::bench
