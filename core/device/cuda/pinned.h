// Memory of the host that GPUs read and write by themselves, while the host goes on.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include <kolo/core/base/mutex.h>
#include <kolo/core/device/cuda/api.h>
#include <kolo/core/device/device_allocator.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo {

/// Any thread. Host and GPU have the same address for it. It is taken from the system in regions that double,
/// and given back at its end.
class PinnedAllocator final : public Allocator {
 public:
  /// With the context of `gpu`; api outlives it.
  PinnedAllocator(const CudaApi& api, int gpu);

  std::string name() const override { return pinned_.name(); }
  /// Ordinary memory where the system gives no more of the other kind, which one warning says: copies are
  /// then slower, and the host waits for them.
  void* allocate(std::size_t bytes) override KOLO_EXCLUDES(mutex_);
  void deallocate(void* block, std::size_t bytes) noexcept override KOLO_EXCLUDES(mutex_);

  /// What GPUs write to themselves. Throws ResourceExhaustedError where the system gives none.
  void* allocate_pinned(std::size_t bytes) { return pinned_.allocate(bytes); }

 private:
  DeviceAllocator pinned_;
  Mutex mutex_;
  std::set<void*> ordinary_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo
