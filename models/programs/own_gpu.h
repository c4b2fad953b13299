// Which GPU a rank of kolo-train has, and its session's configuration.
#pragma once

#include <string>

#include <kolo/core/runtime/config.h>
#include <kolo/models/programs/train_options.h>

namespace kolo::models {

/// What kolo-train takes of this process's GPUs.
struct OwnGpu {
  std::string list = {};   // as visible_device_list has it; "" where there is none
  std::string place = {};  // the same for ranks that share it; "" where it does not serve
};

/// A scheduler may show each rank one GPU of its own, or a host fewer than it has ranks. Throws
/// FailedPreconditionError where a GPU was asked for and none serves.
OwnGpu gpu_of_this_rank(DeviceChoice choice);

/// Collective: ranks that share a GPU share its memory.
SessionConfig session_config(const TrainOptions& options, const OwnGpu& gpu);

}  // namespace kolo::models
