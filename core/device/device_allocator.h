// The memory of a GPU: how much of it kolo takes, when, and how it is handed out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/device/device_options.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo {

/// The device's own memory, in regions. One thread at a time.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual std::int64_t total_bytes() const = 0;
  /// What neither this process nor another has taken.
  virtual std::int64_t free_bytes() const = 0;
  /// nullptr if the device has not so much. Aligned to 256 bytes.
  virtual void* reserve(std::size_t bytes) = 0;
  virtual void release(void* region, std::size_t bytes) noexcept = 0;
};

/// How much a process takes of a device. fraction > 0: total · fraction; 0: what is free, less a reserve of
/// 225 MiB where less than 2 GiB are free, else the larger of 300 MiB and 5 %.
/// Throws InvalidArgumentError unless fraction is in [0, 1].
std::int64_t memory_limit(std::int64_t total_bytes, std::int64_t free_bytes, double fraction);

/// While it lives, what this thread takes from DeviceAllocators bears this name where memory is short.
class MemoryOwner {
 public:
  explicit MemoryOwner(std::string name);
  ~MemoryOwner();
  MemoryOwner(const MemoryOwner&) = delete;
  MemoryOwner& operator=(const MemoryOwner&) = delete;

 private:
  std::string outer_;
};

/// Hands out blocks of regions that it reserves: all of its limit at the first use, or, with allow_growth,
/// from 1 MiB on, doubled each time. Where the device refuses a region, it asks for 90 % of it, and so on,
/// with one line in the log each. Freed blocks are used again; regions are never given back before its end.
/// Any thread.
class DeviceAllocator final : public Allocator {
 public:
  /// device: as messages name it. Throws as memory_limit.
  DeviceAllocator(std::string device, std::unique_ptr<MemorySource> memory, const GpuOptions& options);
  ~DeviceAllocator() override;

  std::string name() const override { return device_; }
  /// Throws ResourceExhaustedError naming device, bytes asked for, in use and limit, the three largest owners
  /// and what other processes have of the device.
  void* allocate(std::size_t bytes) override KOLO_EXCLUDES(mutex_);
  void deallocate(void* block, std::size_t bytes) noexcept override KOLO_EXCLUDES(mutex_);

  std::int64_t limit_bytes() const { return limit_; }
  std::int64_t reserved_bytes() const KOLO_EXCLUDES(mutex_);
  std::int64_t bytes_in_use() const KOLO_EXCLUDES(mutex_);
  /// The most that was in use at one time.
  std::int64_t peak_bytes() const KOLO_EXCLUDES(mutex_);

 private:
  struct Block {
    std::size_t bytes;
    bool free;
    bool begins_region;
    std::string owner = {};  // of one that is not free; "" where nobody has said
  };
  using Blocks = std::map<std::byte*, Block>;
  void* take(std::size_t bytes) KOLO_REQUIRES(mutex_);
  bool grow(std::size_t bytes) KOLO_REQUIRES(mutex_);
  std::size_t reserve_region(std::size_t wanted, std::size_t needed) KOLO_REQUIRES(mutex_);
  void set_free(Blocks::iterator block) KOLO_REQUIRES(mutex_);
  std::string owners() const KOLO_REQUIRES(mutex_);
  std::string others() const KOLO_REQUIRES(mutex_);
  void join_with_next(Blocks::iterator block) KOLO_REQUIRES(mutex_);

  const std::string device_;
  const std::unique_ptr<MemorySource> memory_;
  const bool allow_growth_;
  const std::int64_t limit_;

  mutable Mutex mutex_;
  std::vector<std::pair<void*, std::size_t>> regions_ KOLO_GUARDED_BY(mutex_);
  std::int64_t reserved_ KOLO_GUARDED_BY(mutex_) = 0;
  std::int64_t in_use_ KOLO_GUARDED_BY(mutex_) = 0;
  std::int64_t peak_ KOLO_GUARDED_BY(mutex_) = 0;
  std::size_t next_region_ KOLO_GUARDED_BY(mutex_);
  Blocks blocks_ KOLO_GUARDED_BY(mutex_);  // by address; a region's blocks cover it
  std::set<std::pair<std::size_t, std::byte*>> free_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo
