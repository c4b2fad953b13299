#include <kolo/core/device/gpu_platform.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <sstream>
#include <utility>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/text.h>
#include <kolo/core/device/plugin.h>

namespace kolo {
namespace {

constexpr int kMaxVirtualGpus = 64;
constexpr char kSpaces[] = " \t";

// Without the spaces around them, as TensorFlow and CUDA read such lists.
std::vector<std::string> entries(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream text(list);
  for (std::string part; std::getline(text, part, ',');) {
    const auto first = part.find_first_not_of(kSpaces);
    parts.push_back(
        first == std::string::npos ? "" : part.substr(first, part.find_last_not_of(kSpaces) + 1 - first));
  }
  return parts;
}

std::optional<std::int64_t> parse_size(const std::string& text) {
  for (const auto& [unit, shift] :
       {std::pair<std::string, int>{"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"", 0}}) {
    if (!text.ends_with(unit)) continue;
    const auto number = parse_int64(text.substr(0, text.size() - unit.size()));
    if (!number || *number <= 0 || *number > (INT64_MAX >> shift)) return std::nullopt;
    return *number << shift;
  }
  return std::nullopt;
}

std::string in_gib(std::int64_t bytes) {
  return fmt::format("{:.2f}GiB", static_cast<double>(bytes) / (std::int64_t{1} << 30));
}

}  // namespace

std::shared_ptr<GpuPlatform> gpu_platform(const DeviceOptions& options) {
  if (!options.virtual_gpus.empty()) return make_virtual_gpu_platform(options.virtual_gpus);
  static const std::vector<VirtualGpu> of_process = virtual_gpus_of_environment();
  static const auto virtual_platform = of_process.empty() ? nullptr : make_virtual_gpu_platform(of_process);
  return virtual_platform ? virtual_platform : plugin_platform();
}

std::vector<int> gpus_of_environment(int count) {
  std::vector<int> gpus;
  const auto list = env_string("CUDA_VISIBLE_DEVICES");
  if (!list) {
    for (int gpu = 0; gpu < count; ++gpu) gpus.push_back(gpu);
    return gpus;
  }
  for (const std::string& entry : entries(*list)) {
    const auto gpu = parse_int64(entry);
    if (!gpu || *gpu < 0 || *gpu >= count) break;
    if (std::find(gpus.begin(), gpus.end(), *gpu) != gpus.end()) break;
    gpus.push_back(static_cast<int>(*gpu));
  }
  return gpus;
}

std::vector<int> visible_gpus(const GpuPlatform& platform) {
  if (!platform.applies_environment()) return gpus_of_environment(platform.count());
  std::vector<int> all(static_cast<std::size_t>(platform.count()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<int> parse_visible_device_list(const std::string& list, int count) {
  std::vector<int> positions;
  if (list.empty())
    for (int i = 0; i < count; ++i) positions.push_back(i);
  for (const std::string& entry : entries(list)) {
    const auto position = parse_int64(entry);
    if (!position || *position > INT32_MAX || *position < INT32_MIN)
      throw InvalidArgumentError("Could not parse entry in 'visible_device_list': '{}'", entry);
    if (*position < 0 || *position >= count)
      throw InvalidArgumentError(
          "'visible_device_list' listed an invalid GPU id '{}' but visible device count is {}; where a "
          "scheduler or CUDA_VISIBLE_DEVICES shows each rank GPUs of its own, the list counts these, from 0; "
          "visible_device_list = \"local\" takes the local rank's among them",
          *position, count);
    positions.push_back(static_cast<int>(*position));
  }
  std::vector<int> sorted = positions;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw InvalidArgumentError("visible_device_list contained a duplicate entry: {}", list);
  return positions;
}

std::vector<VirtualGpu> virtual_gpus_of_environment() {
  const std::string text = env_string("KOLO_VIRTUAL_GPUS").value_or("0");
  const auto x = text.find('x');
  const auto number = parse_int64(text.substr(0, x));
  VirtualGpu gpu;
  const auto bytes = x == std::string::npos ? gpu.total_bytes : parse_size(text.substr(x + 1));
  if (!number || *number < 0 || *number > kMaxVirtualGpus || !bytes)
    throw InvalidArgumentError(
        "KOLO_VIRTUAL_GPUS=\"{}\" is not valid; allowed: a whole number from 0 to {}, or that number with a "
        "size of each, such as 4x2GiB",
        text, kMaxVirtualGpus);
  gpu.total_bytes = *bytes;
  return std::vector<VirtualGpu>(static_cast<std::size_t>(*number), gpu);
}

void log_gpus(const GpuPlatform& platform, const std::vector<int>& gpus) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const GpuProperties gpu = platform.properties(gpus[i]);
    log_info("Found device {} with properties: ", i);
    log_info("name: {}", gpu.name);
    log_info("major: {} minor: {} memoryClockRate (GHz) {}", gpu.major, gpu.minor, gpu.memory_clock_ghz);
    log_info("pciBusID {}", gpu.pci_bus_id);
    log_info("Total memory: {}", in_gib(gpu.total_bytes));
    log_info("Free memory: {}", in_gib(gpu.free_bytes));
  }
  std::string head = "DMA: ";
  for (std::size_t i = 0; i < gpus.size(); ++i) head += fmt::format("{} ", i);
  log_info("{}", head);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    std::string row = fmt::format("{}:   ", i);
    for (const int peer : gpus)
      row += gpus[i] == peer || platform.can_access_peer(gpus[i], peer) ? "Y " : "N ";
    log_info("{}", row);
  }
}

}  // namespace kolo
