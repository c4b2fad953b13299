#include <kolo/models/programs/own_gpu.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/device/gpu_platform.h>
#include <kolo/core/runtime/group.h>

namespace kolo::models {
namespace {

// Of ranks that share a GPU the first would take all that is free.
double memory_fraction(const OwnGpu& own) {
  constexpr double kOfSharedGpu = 0.9;
  const auto places = world_group().allgather(own.place);
  const auto sharing = std::count(places.begin(), places.end(), own.place);
  return own.place.empty() || sharing == 1 ? 0 : kOfSharedGpu / static_cast<double>(sharing);
}

}  // namespace

OwnGpu gpu_of_this_rank(DeviceChoice choice) {
  if (choice == DeviceChoice::cpu) return {};  // none is looked for
  const auto platform = gpu_platform(DeviceOptions());
  const std::vector<int> visible = platform ? visible_gpus(*platform) : std::vector<int>();
  OwnGpu own;
  if (!visible.empty()) {
    const auto chosen = static_cast<std::size_t>(process().local_rank) % visible.size();
    own.list = std::to_string(chosen);
    const GpuProperties gpu = platform->properties(visible[chosen]);
    if (std::pair(gpu.major, gpu.minor) >= platform->minimum_capability())
      own.place = process().hostname + " " + (gpu.uuid.empty() ? gpu.pci_bus_id : gpu.uuid);
  }
  if (choice == DeviceChoice::gpu && own.place.empty())
    throw FailedPreconditionError(
        "--device gpu was asked for, but there is no GPU in this process{}; use --device auto or cpu",
        visible.empty() ? "" : " that kolo has code for");
  return own;
}

SessionConfig session_config(const TrainOptions& options, const OwnGpu& gpu) {
  SessionConfig config;
  config.intra_op_parallelism_threads = options.threads;
  config.inter_op_parallelism_threads = options.threads;
  config.graph_options.precision = options.precision;
  config.gpu_options.visible_device_list = gpu.list;
  config.gpu_options.per_process_gpu_memory_fraction = memory_fraction(gpu);
  if (gpu.list.empty()) config.device_count["GPU"] = 0;
  return config;
}

}  // namespace kolo::models
