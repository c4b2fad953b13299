// What a session may use and how it places.
#pragma once

#include <string>

#include <kolo/core/passes/graph_options.h>

namespace kolo {

struct GpuOptions {
  std::string visible_device_list = {};  // "5,3": these GPUs, in this order, become GPU:0, GPU:1; "" is all.
                                         // Not parsed without any GPU
};

struct SessionConfig {
  int intra_op_parallelism_threads =
      0;  // threads one kernel may use; 0: OMP_NUM_THREADS, else cores. One value per process
  int inter_op_parallelism_threads =
      0;  // threads that run nodes; 0: as many as intra-op; 1: the caller's thread alone
  GpuOptions gpu_options = {};
  GraphOptions graph_options = {};  // what may be rewritten of a step; nothing of it changes a result
  bool allow_soft_placement = false;  // a node that cannot be where it was asked for goes where it can
};

}  // namespace kolo
