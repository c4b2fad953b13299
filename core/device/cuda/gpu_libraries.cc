#include <kolo/core/device/cuda/gpu_libraries.h>

namespace kolo {

// A handle is given back where its GPU is current; what that returns at the end of a process, when the
// runtime may be gone before, is of no interest.
GpuLibraries::~GpuLibraries() { api_.set_device(gpu_); }

}  // namespace kolo
