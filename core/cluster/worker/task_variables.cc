#include <kolo/core/cluster/worker/task_variables.h>

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/device/device.h>
#include <kolo/core/device/device_allocator.h>
#include <kolo/core/device/device_values.h>
#include <kolo/core/kernels/containers.h>
#include <kolo/core/runtime/session_state.h>

namespace kolo::detail {
namespace {

constexpr std::int64_t kAlwaysTried = std::int64_t{64} << 20;

// Of this machine, swap included; the largest number there is where the kernel does not tell.
std::int64_t available_bytes() {
  std::ifstream lines("/proc/meminfo");
  std::string name, rest;
  std::int64_t kib = 0, number = 0;
  bool known = false;
  while (lines >> name >> number && std::getline(lines, rest)) {
    known = known || name == "MemAvailable:";
    if (name == "MemAvailable:" || name == "SwapFree:") kib += number;
  }
  return known ? kib * 1024 : std::numeric_limits<std::int64_t>::max();
}

// malloc grants more than there is; the kernel then ends the whole process, with the values of all others.
void check_it_fits(const std::string& name, DType dtype, const Shape& shape) {
  std::int64_t bytes = 0;
  const bool is_too_large =
      __builtin_mul_overflow(static_cast<std::int64_t>(size_of(dtype)), shape.elements(), &bytes);
  if (is_too_large || bytes <= kAlwaysTried) return;  // the tensor itself says what is too large
  if (const std::int64_t available = available_bytes(); bytes > available)
    throw ResourceExhaustedError("variable \"{}\" of {} {} takes {} bytes; {} bytes are free", name,
                                 tf_name(dtype), shape, bytes, available);
}

std::shared_ptr<VariableStorage> make_storage(const std::string& name, DType dtype, const Shape& shape,
                                              Device& device) {
  check_it_fits(name, dtype, shape);  // on a GPU, too: its zeros are the host's first
  auto variable = std::make_shared<VariableStorage>();
  variable->name = name;
  variable->device = &device;
  variable->uses = std::make_unique<Mutex>();
  const MemoryOwner owner(fmt::format("variable \"{}\"", name));
  variable->value = copy_to_device(Tensor::zeros(dtype, shape), device);
  return variable;
}

}  // namespace

VariableKey TaskVariables::key_of(const Node& storage) {
  const auto shared_name = storage.attr<std::string>("shared_name");
  return {storage.attr<std::string>("container"), shared_name.empty() ? storage.name() : shared_name};
}

VariableKey TaskVariables::in_container(const VariableKey& key) {
  return {key.container.empty() ? Containers::kDefault : key.container, key.name};
}

std::shared_ptr<VariableStorage> TaskVariables::find_or_make(const VariableKey& key, DType dtype,
                                                             const Shape& shape, Device& device) {
  const VariableKey here = in_container(key);
  MutexLock lock(mutex_);
  const auto found = all_.find(here);
  if (found == all_.end()) {
    auto made = make_storage(here.name, dtype, shape, device);  // may throw: what stands in all_ is whole
    return all_.emplace(here, std::move(made)).first->second;
  }
  std::shared_ptr<VariableStorage>& variable = found->second;
  const Tensor& value = variable->value;
  const bool fits = value.dtype() == dtype && value.shape() == shape;
  if (fits && variable->device == &device) return variable;
  // Plans hold its memory: with another one in its place, what they write nobody would read.
  const bool is_held = variable.use_count() > 1, is_initialized = variable->initialized.load();
  if (!fits && (is_held || is_initialized))
    throw InvalidArgumentError("Variable {} is {} {} in container \"{}\" of {}; this graph declares {} {}",
                               here.name, tf_name(value.dtype()), value.shape(), here.container, task_,
                               tf_name(dtype), shape);
  if (is_held)
    throw InvalidArgumentError("Variable {} lies on {}; this graph puts it on {}", here.name,
                               variable->device->name(), device.name());
  // Nobody has it: it was dropped, or never used, or set before it was known where it lies.
  auto moved = make_storage(here.name, dtype, shape, device);
  if (is_initialized) write_variable(*moved, read_variable(*variable));
  return variable = std::move(moved);
}

std::shared_ptr<VariableStorage> TaskVariables::find(const VariableKey& key) {
  MutexLock lock(mutex_);
  const auto found = all_.find(in_container(key));
  return found == all_.end() ? nullptr : found->second;
}

void TaskVariables::drop(const std::string& container) {
  MutexLock lock(mutex_);
  for (auto it = all_.begin(); it != all_.end();) {
    if (it->first.container != in_container({container, ""}).container) {
      ++it;
      continue;
    }
    it->second->initialized = false;
    // Sessions that stay share it with those to come.
    it = it->second.use_count() > 1 ? std::next(it) : all_.erase(it);
  }
}

std::int64_t TaskVariables::bytes() {
  MutexLock lock(mutex_);
  std::int64_t bytes = 0;
  for (const auto& [key, variable] : all_) bytes += static_cast<std::int64_t>(variable->value.bytes());
  return bytes;
}

Tensor copy_of(VariableStorage& variable) {
  MutexLock lock(*variable.uses);
  if (!variable.initialized.load()) return {};
  return variable.device->has_host_memory() ? variable.value.clone() : read_variable(variable);
}

void set_value(VariableStorage& variable, const Tensor& value) {
  if (value.dtype() != variable.value.dtype() || value.shape() != variable.value.shape())
    throw InvalidArgumentError("variable \"{}\" is {} {}; it cannot be set to {} {}", variable.name,
                               tf_name(variable.value.dtype()), variable.value.shape(),
                               tf_name(value.dtype()), value.shape());
  MutexLock lock(*variable.uses);
  write_variable(variable, value);
}

}  // namespace kolo::detail
