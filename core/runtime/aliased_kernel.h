// Kernels for CPUs on a device whose memory the host itself cannot reach: a virtual GPU.
#pragma once

#include <memory>

#include <kolo/core/device/device.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// The kernel sees the device's memory through aliases: what it only reads cannot be written there. A run
/// throws InternalError where the node is given memory of the host, but for what its op keeps there. What the
/// kernel itself makes in the host's memory is moved to the device.
std::unique_ptr<Kernel> with_aliases(std::unique_ptr<Kernel> kernel, const StepNode& node, Device& device);

}  // namespace kolo
