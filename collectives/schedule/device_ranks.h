// How the ranks agree that their GPUs reduce buckets among themselves.
#pragma once

#include <memory>
#include <span>

#include <kolo/collectives/algorithms/device_collectives.h>
#include <kolo/collectives/job/runtime.h>

namespace kolo::detail {

/// Collective, on all ranks: connects the GPU of this rank, of a session that has `gpus`, with the others'.
/// nullptr where that cannot be (two ranks share one, the library is missing, another schedule has them): the
/// same on all ranks, and one line of rank 0's log says why. One at a time: until what it returns is gone.
/// Throws, the same on all ranks: FailedPreconditionError where versions differ, or where it cannot be and
/// KOLO_ALLREDUCE asks for it; DeadlineExceededError and UnavailableError where connecting fails.
std::shared_ptr<DeviceCollectives> join_devices(Runtime& runtime, std::span<Device* const> gpus);

}  // namespace kolo::detail
