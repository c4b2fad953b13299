// What the process asks of its GPUs, counted: KOLO_CUDA_COUNT=1.
#pragma once

#include <atomic>
#include <cstdint>

#include <kolo/core/device/cuda/api.h>

namespace kolo {

/// Calls of the table that were counted so far.
struct ApiCounts {
  std::atomic<std::int64_t> copies{0}, syncs{0}, kept{0};
};
ApiCounts& api_counts();

/// Whether KOLO_CUDA_COUNT=1 asks for counts and times.
bool counts_calls();
/// cuda_api(), or a table whose functions count and call on.
const CudaApi& counted_cuda_api();

}  // namespace kolo
