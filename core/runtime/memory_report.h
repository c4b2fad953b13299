// What a step has taken of each device.
#pragma once

#include <vector>

#include <kolo/core/runtime/plan.h>

namespace kolo::detail {

/// After a run of `plan` in `frame`, before the frame is given back. Sorted by device. What was fed is the
/// caller's and does not count.
std::vector<DeviceMemory> memory_report(const Plan& plan, const Frame& frame);

}  // namespace kolo::detail
