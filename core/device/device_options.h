// What a session says about the devices that it wants to see.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kolo {

/// A device of type GPU that is host memory and a thread: for tests, and for machines without a GPU.
struct VirtualGpu {
  std::int64_t total_bytes = std::int64_t{2} << 30;
  std::int64_t free_bytes = -1;                   // what others have left of it; negative: all
  std::chrono::microseconds transfer_latency{0};  // each copy to or from it takes at least so long
  double transfer_bytes_per_second = 0;           // and no more than this; 0: as fast as memory is
  std::uint64_t delay_seed = 0;  // other than 0: its streams fall behind one another at random, as it has it
};

/// Which GPUs a session uses, and how much of their memory. Bytes and shares are of one GPU.
struct GpuOptions {
  /// Of a GPU's total memory, reserved when the device is first used. 0: all that is free, less a reserve.
  double per_process_gpu_memory_fraction = 0;
  bool allow_growth = false;             // begin small and grow up to that limit
  std::string visible_device_list = {};  // "5,3": these GPUs, in this order, become GPU:0, GPU:1; "" is all.
                                         // Counted after CUDA_VISIBLE_DEVICES; not parsed without any GPU
  bool allow_tf32 = false;               // as graph_options.precision = Precision::tf32
};

/// The devices of a session.
struct DeviceOptions {
  std::map<std::string, int> device_count = {};  // type → at most so many; missing: 1 CPU, all GPUs
  /// Instead of the process's GPUs; empty: those of KOLO_VIRTUAL_GPUS, else the real ones.
  std::vector<VirtualGpu> virtual_gpus = {};
  GpuOptions gpu_options = {};
  std::vector<std::string> device_filters = {};  // partial names; what matches none is not seen. Empty: all
  std::string task = "/job:localhost/replica:0/task:0";  // of this process, before each device's name
};

}  // namespace kolo
