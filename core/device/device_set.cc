#include <kolo/core/device/device_set.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/base/process.h>

namespace kolo {
namespace {

int count_of(const DeviceOptions& options, const std::string& type, int fallback) {
  const auto found = options.device_count.find(type);
  if (found == options.device_count.end()) return fallback;
  if (found->second < 0)
    throw InvalidArgumentError("device_count[\"{}\"] is {}; it must be at least 0", type, found->second);
  return found->second;
}

// Without those whose compute capability is too small.
std::vector<int> usable(const GpuPlatform& platform, const std::vector<int>& gpus) {
  std::vector<int> left;
  for (const int gpu : gpus) {
    const GpuProperties p = platform.properties(gpu);
    const auto minimum = platform.minimum_capability();
    if (std::make_pair(p.major, p.minor) >= minimum) left.push_back(gpu);
    else
      log_info(
          "Ignoring visible gpu device (device: {}, name: {}, pci bus id: {}) with Cuda compute capability "
          "{}.{}. The minimum required Cuda capability is {}.{}.",
          gpu, p.name, p.pci_bus_id, p.major, p.minor, minimum.first, minimum.second);
  }
  return left;
}

// Whether this is the first time that `platform`'s GPUs are reported in this order.
bool is_news(const std::shared_ptr<GpuPlatform>& platform, const std::vector<int>& gpus) {
  static Mutex mutex;
  static std::map<std::weak_ptr<GpuPlatform>, std::vector<std::vector<int>>,
                  std::owner_less<std::weak_ptr<GpuPlatform>>>
      reported;
  MutexLock lock(mutex);
  for (auto it = reported.begin(); it != reported.end();)
    it = it->first.expired() ? reported.erase(it) : std::next(it);
  auto& orders = reported[platform];
  if (std::find(orders.begin(), orders.end(), gpus) != orders.end()) return false;
  orders.push_back(gpus);
  return true;
}

void add_gpus(const DeviceOptions& options, const std::shared_ptr<GpuPlatform>& platform,
              std::vector<std::unique_ptr<Device>>& devices) {
  const int limit = count_of(options, "GPU", INT32_MAX);
  if (limit == 0) return;
  const std::string& list = options.gpu_options.visible_device_list;
  const std::vector<int> of_environment = platform ? visible_gpus(*platform) : std::vector<int>();
  if (of_environment.empty()) {
    if (!list.empty() && process().rank == 0)
      log_debug("there is no GPU in this process: visible_device_list \"{}\" is not looked at", list);
    return;
  }
  const int count = static_cast<int>(of_environment.size());
  const std::string own = std::to_string(process().local_rank % count);
  std::vector<int> visible;
  for (const int position : parse_visible_device_list(list == "local" ? own : list, count))
    visible.push_back(of_environment[position]);
  const bool news = is_news(platform, visible);
  if (news && !visible.empty()) log_gpus(*platform, visible);
  visible = usable(*platform, visible);
  visible.resize(std::min<std::size_t>(visible.size(), limit));
  for (std::size_t i = 0; i < visible.size(); ++i) {
    devices.push_back(platform->make_device(visible[i], fmt::format("{}/device:GPU:{}", options.task, i),
                                            options.gpu_options));
    if (news) log_info("Creating kolo device (/gpu:{}) -> ({})", i, devices.back()->physical_description());
  }
}

bool is_visible(const Device& device, const std::vector<DeviceSpec>& filters) {
  return filters.empty() || std::any_of(filters.begin(), filters.end(), [&](const DeviceSpec& filter) {
           return filter.matches(device.spec());
         });
}

}  // namespace

Device* DeviceSet::first_of(std::string_view type) const {
  for (const auto& device : devices_)
    if (device->type() == type) return device.get();
  return nullptr;
}

Device& DeviceSet::find(std::string_view name) const {
  for (const auto& device : devices_)  // what the placer writes, before all that a user may
    if (device->name() == name) return *device;
  for (const auto& device : devices_)
    for (const auto& names : {lookup_names(device->spec()), local_lookup_names(device->spec())})
      if (std::find(names.begin(), names.end(), name) != names.end()) return *device;
  throw InvalidArgumentError("{} unknown device.", name);
}

std::string DeviceSet::mapping() const {
  std::string text;
  for (const auto& device : devices_) {
    const std::string physical = device->physical_description();
    if (!physical.empty()) text += fmt::format("\n{} -> {}", device->name(), physical);
  }
  return text.empty() ? "Device mapping: no known devices." : "Device mapping:" + text;
}

Device* DeviceSet::holder_of(const Tensor& value) const {
  const Allocator* const memory = value.buffer()->allocator();
  for (const auto& device : devices_)
    if (!device->has_host_memory() && &device->allocator() == memory) return device.get();
  return nullptr;
}

bool DeviceSet::gpus_run_cpu_kernels() const {
  const Device* gpu = first_of("GPU");
  return gpu != nullptr && gpu->runs_cpu_kernels();
}

DeviceSet make_devices(const DeviceOptions& options, const std::shared_ptr<GpuPlatform>& platform) {
  std::vector<DeviceSpec> filters;
  for (const std::string& text : options.device_filters) {
    const auto filter = parse_device_spec(text);
    if (!filter)
      throw InvalidArgumentError(
          "Malformed device filter '{}': device_filters takes device names, in whole or in part", text);
    filters.push_back(*filter);
  }
  std::vector<std::unique_ptr<Device>> devices;
  const int cpus = count_of(options, "CPU", 1);
  if (cpus == 0) throw NotFoundError("No CPU devices are available in this process");
  for (int i = 0; i < cpus; ++i)
    devices.push_back(std::make_unique<CpuDevice>(fmt::format("{}/device:CPU:{}", options.task, i)));
  add_gpus(options, platform, devices);
  devices.erase(std::remove_if(devices.begin(), devices.end(),
                               [&](const auto& device) { return !is_visible(*device, filters); }),
                devices.end());
  return DeviceSet(std::move(devices));
}

DeviceSet make_devices(const DeviceOptions& options) {
  // Who wants no GPU has none looked for: a driver takes a second to start where there are many.
  const bool wanted = count_of(options, "GPU", INT32_MAX) > 0;
  return make_devices(options, wanted ? gpu_platform(options) : nullptr);
}

}  // namespace kolo
