#include <kolo/core/device/device.h>

#include <fmt/format.h>

#include <kolo/core/base/error.h>

namespace kolo {

Device::Device(const std::string& name, int priority) : name_(name), priority_(priority) {
  const auto spec = parse_device_spec(name);
  if (!spec || !spec->is_full()) throw InvalidArgumentError("'{}' is not the full name of a device", name);
  spec_ = *spec;
}

std::string Device::local_name() const { return fmt::format("{}:{}", type(), *spec_.index); }

}  // namespace kolo
