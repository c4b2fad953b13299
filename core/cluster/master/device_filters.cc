#include <kolo/core/cluster/master/device_filters.h>

#include <algorithm>

#include <kolo/core/base/error.h>

namespace kolo::detail {

DeviceFilters::DeviceFilters(const std::vector<std::string>& filters) {
  for (const std::string& text : filters) {
    const auto filter = parse_device_spec(text);
    if (!filter) throw InvalidArgumentError("Malformed device filter '{}'", text);
    filters_.push_back(*filter);
  }
}

bool DeviceFilters::pass_task(const std::string& task) const {
  const auto spec = parse_device_spec(task);
  return spec && (filters_.empty() || std::any_of(filters_.begin(), filters_.end(), [&](const auto& filter) {
                    return filter.is_compatible_with(*spec);
                  }));
}

bool DeviceFilters::pass_device(const std::string& device) const {
  const auto spec = parse_device_spec(device);
  return spec && (filters_.empty() || std::any_of(filters_.begin(), filters_.end(),
                                                  [&](const auto& filter) { return filter.matches(*spec); }));
}

}  // namespace kolo::detail
