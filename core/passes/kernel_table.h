// Which types of devices can run an op: what the placer needs to know of kernels.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kolo/core/graph/op_schema.h>

namespace kolo {

/// One kernel, as far as placement goes.
struct KernelSupport {
  std::string device_type;
  std::vector<DType> types = {};  // of the node; empty: any
  int priority = 0;               // of the device type for this op: the highest is preferred
};

using KernelTable = std::function<std::vector<KernelSupport>(const OpSchema& schema)>;

/// The kernels of this process. gpus_run_cpu_kernels: its GPUs are virtual, and run the CPU kernels of the
/// ops and types that a GPU may run; otherwise kernels count for the device type that they are registered
/// for.
KernelTable registered_kernel_table(bool gpus_run_cpu_kernels);

/// Lines `  device='GPU'; T in [DT_FLOAT]`, or `  <no registered kernels>`.
std::string describe_kernels(const std::vector<KernelSupport>& kernels);

}  // namespace kolo
