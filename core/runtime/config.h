// What a session may use and how it places.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <kolo/core/device/device_options.h>
#include <kolo/core/passes/graph_options.h>

namespace kolo {

struct SessionConfig {
  int intra_op_parallelism_threads =
      0;  // threads one kernel may use; 0: OMP_NUM_THREADS, else cores. One value per process
  int inter_op_parallelism_threads =
      0;  // threads that run nodes; 0: as many as intra-op; 1: the caller's thread alone
  GpuOptions gpu_options = {};
  std::map<std::string, int> device_count = {};  // type → at most so many; missing: 1 CPU, all GPUs
  std::vector<VirtualGpu> virtual_gpus = {};     // instead of the process's GPUs; see docs/devices.md
  std::vector<std::string> device_filters = {};  // partial names; what matches none is not seen. Empty: all
  bool log_device_placement = false;  // says where each node goes, on stdout and in the log, at its first run
  bool allow_soft_placement = false;  // a node that cannot be where it was asked for goes where it can
  GraphOptions graph_options = {};    // what may be rewritten of a step; nothing of it changes a result
};

}  // namespace kolo
