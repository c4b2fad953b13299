// The step that runs some operations, as prune makes it, with devices that a test makes up.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/passes/place.h>
#include <kolo/core/passes/prune.h>

namespace kolo::testing {

inline StepGraph step_for(const std::vector<Operation>& targets,
                          const std::vector<std::pair<Output, Shape>>& fed = {}) {
  StepSignature signature;
  for (const Operation& target : targets)
    signature.fetched.push_back({}), signature.targets.push_back(target.node);
  signature.fed = fed;
  return prune(signature);
}

inline StepGraph step_that_fetches(const std::vector<Output>& fetches) {
  StepSignature signature;
  for (const Output& fetch : fetches)
    signature.fetched.push_back(fetch), signature.targets.push_back(fetch.node);
  return prune(signature);
}

inline const StepNode& node_named(const StepGraph& step, const std::string& name) {
  for (const StepNode& node : step.nodes)
    if (node.name == name) return node;
  throw NotFoundError("no node {}", name);
}

inline std::string local(const std::string& device) { return device.substr(device.rfind("device:") + 7); }

/// A placer over this process's kernels for virtual devices such as "CPU:0" and "GPU:2".
inline Placer local_placer(const std::vector<std::string>& devices, PlacerOptions options = {}) {
  std::vector<PlacerDevice> list;
  for (const std::string& device : devices)
    list.push_back(PlacerDevice::named("/job:localhost/replica:0/task:0/device:" + device));
  options.default_device = "/job:localhost/replica:0/task:0/device:CPU:0";
  return Placer(std::move(list), registered_kernel_table(/*gpus_run_cpu_kernels=*/true), std::move(options));
}

}  // namespace kolo::testing
