#include <kolo/core/passes/place.h>

#include <fmt/format.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/device/device_name.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

bool has_kernel(const StepGraph& graph, const StepNode& node, const std::string& device_type) {
  if (node.schema->name() == kFeedOp) return true;
  const bool has_type = !node.inputs.empty() || !node.dtypes.empty();
  const DType type = !node.inputs.empty() ? graph.dtype(node.inputs[0])
                     : has_type           ? node.dtypes[0]
                                          : DType::f32;
  const auto& kernels = kernels_of(node.schema->name());
  return std::any_of(kernels.begin(), kernels.end(), [&](const KernelEntry& entry) {
    return entry.device_type == device_type && accepts(entry, type, has_type);
  });
}

std::string registered_kernels(const std::string& op) {
  std::string lines;
  for (const KernelEntry& entry : kernels_of(op)) {
    std::string types;
    for (const DType type : entry.types)
      types += (types.empty() ? "" : ", ") + std::string(tf_enum_name(type));
    lines += fmt::format("  device='{}'{}", entry.device_type, types.empty() ? "" : "; T in [" + types + "]");
  }
  return lines.empty() ? "  <no registered kernels>" : lines;
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string choose(const StepGraph& graph, const StepNode& node, const std::vector<std::string>& devices,
                   bool soft) {
  const std::string requested = node.origin != nullptr ? node.origin->requested_device() : "";
  const auto spec = parse_device_spec(requested);
  if (!spec)
    throw InvalidArgumentError("Malformed device specification '{}' [node \"{}\", {}]", requested, node.name,
                               node.schema->name());
  const auto first_that = [&](const DeviceSpec& wanted, bool needs_kernel) -> std::string {
    for (const auto& device : devices) {
      const DeviceSpec full = *parse_device_spec(device);
      if (wanted.matches(full) && (!needs_kernel || has_kernel(graph, node, *full.type))) return device;
    }
    return "";
  };
  std::string chosen = first_that(*spec, true);
  if (chosen.empty() && soft) {
    DeviceSpec relaxed = *spec;
    relaxed.type.reset();
    relaxed.index.reset();
    chosen = first_that(relaxed, true);
  }
  if (!chosen.empty()) return chosen;
  if (first_that({}, true).empty())
    throw InvalidArgumentError(
        "No OpKernel was registered to support Op '{}' with these types [node \"{}\"]. Registered devices: "
        "[{}]. Registered kernels:{}",
        node.schema->name(), node.name, join(devices), registered_kernels(node.schema->name()));
  const std::string reason = first_that(*spec, false).empty()
                                 ? fmt::format(
                                       " because no devices matching that specification are registered in "
                                       "this process; available devices: {}",
                                       join(devices))
                                 : fmt::format(" because no supported kernel for {} devices is available.",
                                               spec->type.value_or("these"));
  throw InvalidArgumentError(
      "Cannot assign a device to node '{}': Could not satisfy explicit device specification '{}'{}",
      node.name, requested, reason);
}

}  // namespace

void place(StepGraph& graph, const std::vector<std::string>& devices, bool allow_soft_placement) {
  if (devices.empty()) throw FailedPreconditionError("No devices are registered");
  for (StepNode& node : graph.nodes) {
    // The variable's side of a reference wins.
    const bool follows =
        !node.inputs.empty() && (graph.nodes[node.inputs[0].node].schema->is_variable_storage() ||
                                 node.schema->is_expanded_by_pass());
    if (follows) node.device = graph.nodes[node.inputs[0].node].device;
    else if (node.schema->is_expanded_by_pass()) node.device = devices.front();
    else node.device = choose(graph, node, devices, allow_soft_placement);
  }
}

}  // namespace kolo
