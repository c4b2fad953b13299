// The devices, ops and kernels of the worked examples on placement: job a, ten CPUs, ten GPUs.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/passes/placer.h>

namespace kolo::testing {

inline OpSchema two_inputs(const char* name) { return OpSchema(name).input("a").input("b").output("y"); }
inline OpSchema source(const char* name) { return OpSchema(name).output("y", DType::f32); }
inline OpSchema with_input(const char* name) { return OpSchema(name).input("x").output("y"); }
inline OpSchema assignment(const char* name) {
  return OpSchema(name).input("ref").updates().input("value").output("y");
}

struct PlacerOp {
  OpSchema schema;
  std::vector<KernelSupport> kernels;
};

/// "…C" runs on CPUs alone, "…G" on GPUs.
inline const std::map<std::string, PlacerOp>& placer_ops() {
  static const std::vector<KernelSupport> cpu = {{"CPU"}}, gpu = {{"GPU"}}, both = {{"CPU"}, {"GPU"}};
  static const std::map<std::string, PlacerOp> ops = [] {
    std::map<std::string, PlacerOp> made;
    const auto add = [&](OpSchema schema, const std::vector<KernelSupport>& kernels) {
      const std::string name = schema.name();
      made.emplace(name, PlacerOp{std::move(schema), kernels});
    };
    add(source("In").output("z", DType::f32), cpu);
    add(source("Out"), both);
    add(source("Dev"), gpu);
    for (const auto& [suffix, kernels] : {std::pair("", both), {"C", cpu}, {"G", gpu}}) {
      add(source((std::string("Var") + suffix).c_str()).variable_storage(), kernels);
      add(with_input((std::string("Relu") + suffix).c_str()), kernels);
      add(assignment((std::string("Assign") + suffix).c_str()), kernels);
    }
    add(two_inputs("Add"), both);
    add(OpSchema("UpdateTwo").input("a").updates().input("b").updates().output("y"), both);
    add(with_input("Shape").metadata(), both);
    add(with_input("PrefersCpu"), {{"CPU", {}, 1}, {"GPU", {}, 0}});
    add(with_input("PrefersGpu"), {{"CPU", {}, 0}, {"GPU", {}, 1}});
    add(with_input("FloatOnGpu"), {{"CPU"}, {"GPU", {DType::f32}}});
    add(with_input("Nowhere"), {});
    return made;
  }();
  return ops;
}

inline std::vector<PlacerDevice> devices_of_task(const std::string& task, int cpus, int gpus) {
  std::vector<PlacerDevice> devices;
  for (int i = 0; i < cpus; ++i)
    devices.push_back(PlacerDevice::named(task + "/device:CPU:" + std::to_string(i)));
  for (int i = 0; i < gpus; ++i)
    devices.push_back(PlacerDevice::named(task + "/device:GPU:" + std::to_string(i)));
  return devices;
}

struct PlacerGraph {
  std::vector<PlacerNode> nodes;

  /// "name" or "name:output" for each input.
  PlacerNode& add(const std::string& name, const std::string& op, const std::vector<std::string>& inputs = {},
                  const std::string& device = "", const std::vector<std::string>& groups = {}) {
    PlacerNode node;
    node.name = name;
    node.schema = &placer_ops().at(op).schema;
    node.type = DType::f32;
    node.requested_device = device;
    node.colocation_groups = groups;
    for (const std::string& input : inputs) node.inputs.push_back({index_of(input), 0});
    nodes.push_back(std::move(node));
    return nodes.back();
  }

  int index_of(const std::string& name) const {
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].name == name) return static_cast<int>(i);
    return -1;
  }

  /// The names of the nodes placed, in that order.
  std::vector<std::string> place(
      PlacerOptions options = {},
      std::vector<PlacerDevice> devices = devices_of_task("/job:a/replica:0/task:0", 10, 10),
      const std::map<std::string, std::string>& group_devices = {}) {
    const Placer placer(
        std::move(devices), [](const OpSchema& schema) { return placer_ops().at(schema.name()).kernels; },
        std::move(options));
    std::vector<std::string> names;
    for (const int node : placer.place(nodes, group_devices)) names.push_back(nodes[node].name);
    return names;
  }

  /// "GPU:0" of task 0 of job a; the whole name elsewhere.
  std::string device(const std::string& name) const {
    const std::string task = "/job:a/replica:0/task:0/device:";
    const std::string& device = nodes.at(static_cast<std::size_t>(index_of(name))).assigned_device;
    return device.starts_with(task) ? device.substr(task.size()) : device;
  }
};

}  // namespace kolo::testing
