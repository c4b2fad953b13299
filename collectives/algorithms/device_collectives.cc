#include <kolo/collectives/algorithms/device_collectives.h>

#include <fmt/format.h>

#include <atomic>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

std::atomic<const DeviceLibrary*> library_of_plugin{nullptr};

// NCCL refuses two ranks on one GPU, even on different slices of it.
bool share_a_gpu(const DevicePlace& a, const DevicePlace& b) {
  return a.gpu == b.gpu || (a.host == b.host && a.slot == b.slot);
}

}  // namespace

const DeviceLibrary* device_library() {
  kernels_of("NoOp");  // from then on the plug-in has registered what it has
  return library_of_plugin;
}
void set_device_library(const DeviceLibrary* library) { library_of_plugin = library; }

std::string why_not_together(const std::string& library, std::span<const DevicePlace> places) {
  for (std::size_t r = 0; r < places.size(); ++r)
    if (!places[r].why_not.empty())
      return fmt::format("rank {} on {}: {}", r, places[r].host, places[r].why_not);
  for (std::size_t r = 1; r < places.size(); ++r)
    if (places[r].version != places[0].version)
      throw FailedPreconditionError(
          "{} is {} on rank 0 ({}) but {} on rank {} ({}); all ranks must use one version "
          "(KOLO_CUDA_LIBRARIES names its folder), or KOLO_ALLREDUCE=mpi do without it",
          library, places[0].version, places[0].host, places[r].version, r, places[r].host);
  for (std::size_t r = 1; r < places.size(); ++r)
    for (std::size_t other = 0; other < r; ++other)
      if (share_a_gpu(places[other], places[r]))
        return fmt::format("ranks {} and {} on {} share the GPU {} ({})", other, r, places[r].host,
                           places[r].slot, places[r].gpu);
  return "";
}

}  // namespace kolo
