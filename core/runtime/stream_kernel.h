// A kernel that runs on its device's stream instead of the executor's threads.
#pragma once

#include <memory>

#include <kolo/core/device/stream.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {

/// As asynchronous to the executor as a reduction is: the node is done when its stream has run it.
/// threads: what the kernel may use for one call. `stream` outlives the kernel.
std::unique_ptr<Kernel> on_stream(std::unique_ptr<Kernel> kernel, Stream& stream, int threads);
/// True of what on_stream has made.
bool runs_on_stream(const Kernel& kernel);

}  // namespace kolo
