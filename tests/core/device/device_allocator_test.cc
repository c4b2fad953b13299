// The amounts are those of row 33 of the worked examples; the policy is tested on every kind of device.
#include <kolo/core/device/device_allocator.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/device/gpu_platform.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(kGiB); }

// Addresses that nobody reads or writes: a GPU's memory as the host sees it.
class CountedMemory final : public MemorySource {
 public:
  CountedMemory(std::int64_t total, std::int64_t free, std::int64_t really_free)
      : total_(total), free_(free), really_free_(really_free) {}
  std::int64_t total_bytes() const override { return total_; }
  std::int64_t free_bytes() const override { return free_; }
  void* reserve(std::size_t bytes) override {
    if (static_cast<std::int64_t>(bytes) > really_free_) return nullptr;
    really_free_ -= static_cast<std::int64_t>(bytes);
    void* region = next_;
    next_ += bytes + 256;  // a gap: regions are never neighbours
    return region;
  }
  void release(void*, std::size_t) noexcept override {}

 private:
  std::int64_t total_, free_, really_free_;
  std::byte* next_ = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
};

DeviceAllocator allocator(std::int64_t total, std::int64_t free, GpuOptions options = {},
                          std::int64_t really_free = INT64_MAX) {
  return DeviceAllocator("GPU 7", std::make_unique<CountedMemory>(total, free, really_free), options);
}

// Row 33 of the worked examples.
TEST(MemoryLimit, LeavesAReserveWithoutAFraction) {
  const auto free = static_cast<std::int64_t>(3.95 * static_cast<double>(kGiB));
  EXPECT_NEAR(gib(memory_limit(4 * kGiB, free, 0)), 3.66, 0.005);
  EXPECT_EQ(memory_limit(4 * kGiB, kGiB, 0), kGiB - 225 * kMiB);
  EXPECT_EQ(memory_limit(16 * kGiB, 10 * kGiB, 0), 10 * kGiB - 10 * kGiB / 20);
  EXPECT_EQ(memory_limit(4 * kGiB, 100 * kMiB, 0), 0);
}

// Row 33 of the worked examples.
TEST(MemoryLimit, IsAFractionOfTheTotal) { EXPECT_NEAR(gib(memory_limit(4 * kGiB, kGiB, 0.4)), 1.6, 1e-6); }

TEST(MemoryLimit, RefusesAFractionOutsideZeroToOne) {
  for (const double fraction : {-0.1, 1.1, std::nan("")})
    EXPECT_THROW(memory_limit(kGiB, kGiB, fraction), InvalidArgumentError) << fraction;
}

TEST(DeviceAllocator, ReservesAllAtItsFirstUse) {
  DeviceAllocator gpu = allocator(4 * kGiB, 4 * kGiB, {.per_process_gpu_memory_fraction = 0.5});
  EXPECT_EQ(gpu.reserved_bytes(), 0);
  gpu.allocate(10);
  EXPECT_EQ(gpu.reserved_bytes(), 2 * kGiB);
  EXPECT_EQ(gpu.bytes_in_use(), 256);
}

TEST(DeviceAllocator, GrowsInDoublesWhereItIsAllowedTo) {
  DeviceAllocator gpu = allocator(4 * kGiB, 4 * kGiB, {.allow_growth = true});
  gpu.allocate(10);
  EXPECT_EQ(gpu.reserved_bytes(), kMiB);
  gpu.allocate(kMiB);
  EXPECT_EQ(gpu.reserved_bytes(), 3 * kMiB);
  gpu.allocate(100 * kMiB);
  EXPECT_EQ(gpu.reserved_bytes(), 3 * kMiB + 128 * kMiB);
}

TEST(DeviceAllocator, GrowsNoFurtherThanItsLimit) {
  DeviceAllocator gpu =
      allocator(4 * kMiB, 4 * kMiB, {.per_process_gpu_memory_fraction = 1, .allow_growth = true});
  gpu.allocate(3 * kMiB);
  EXPECT_EQ(gpu.reserved_bytes(), 4 * kMiB);
  EXPECT_THROW(gpu.allocate(2 * kMiB), ResourceExhaustedError);
}

TEST(DeviceAllocator, AsksForLessWhereTheDeviceRefuses) {
  const auto really_free = static_cast<std::int64_t>(3.5 * static_cast<double>(kGiB));
  const auto free = static_cast<std::int64_t>(3.95 * static_cast<double>(kGiB));
  DeviceAllocator gpu = allocator(4 * kGiB, free, {}, really_free);
  ::testing::internal::CaptureStderr();
  gpu.allocate(kMiB);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("failed to allocate 3.66G (" + std::to_string(gpu.limit_bytes() / 256 * 256) +
                        " bytes) from device: CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_NEAR(gib(gpu.reserved_bytes()), 0.9 * gib(gpu.limit_bytes()), 0.001);
}

TEST(DeviceAllocator, SaysWhatItHasWhereItHasNotEnough) {
  DeviceAllocator gpu = allocator(4 * kMiB, 4 * kMiB, {.per_process_gpu_memory_fraction = 0.5});
  gpu.allocate(kMiB);
  EXPECT_THAT([&] { gpu.allocate(1500000); },
              ThrowsMessage<ResourceExhaustedError>(
                  AllOf(HasSubstr("GPU 7"), HasSubstr("1500000 bytes were asked for"),
                        HasSubstr("1048576 bytes are in use of the limit of 2097152 bytes"))));
  EXPECT_THROW(gpu.allocate(SIZE_MAX), ResourceExhaustedError);
}

TEST(DeviceAllocator, NamesItsLargestOwnersWhereItHasNotEnough) {
  DeviceAllocator gpu = allocator(8 * kMiB, 4 * kMiB, {.per_process_gpu_memory_fraction = 0.5}, 4 * kMiB);
  const auto take = [&](const char* name, std::int64_t bytes) {
    const MemoryOwner owner(name);
    return gpu.allocate(static_cast<std::size_t>(bytes));
  };
  const auto freed = static_cast<std::size_t>(kMiB);
  gpu.deallocate(take("freed", kMiB), freed);
  take("a step", kMiB / 2), take("small", kMiB / 8), take("a variable", kMiB), take("smallest", 1);
  take("a step", kMiB);
  gpu.allocate(100);
  EXPECT_THAT([&] { gpu.allocate(3 * kMiB); },
              ThrowsMessage<ResourceExhaustedError>(
                  HasSubstr("(4194304 reserved); the most of it: 1.50M for a step, 1.00M for a variable, "
                            "128.00K for small; ")));
}

TEST(DeviceAllocator, UsesFreedBlocksAgain) {
  DeviceAllocator gpu = allocator(kMiB, kMiB, {.per_process_gpu_memory_fraction = 1});
  void* a = gpu.allocate(kMiB / 4);
  void* b = gpu.allocate(kMiB / 4);
  void* c = gpu.allocate(kMiB / 2);
  gpu.deallocate(a, kMiB / 4);
  gpu.deallocate(c, kMiB / 2);
  EXPECT_THROW(gpu.allocate(3 * kMiB / 4), ResourceExhaustedError) << "b lies between the two";
  gpu.deallocate(b, kMiB / 4);
  EXPECT_EQ(gpu.allocate(kMiB), a) << "three neighbours are one block again";
  EXPECT_EQ(gpu.reserved_bytes(), kMiB) << "memory is not given back";
}

TEST(DeviceAllocator, GivesABlockForNoBytes) {
  DeviceAllocator gpu = allocator(kMiB, kMiB, {.per_process_gpu_memory_fraction = 1});
  EXPECT_NE(gpu.allocate(0), gpu.allocate(0));
}

TEST(DeviceAllocator, KeepsBlocksApartUnderRandomUse) {
  DeviceAllocator gpu = allocator(kMiB, kMiB, {.per_process_gpu_memory_fraction = 1, .allow_growth = true});
  std::mt19937 random(3);
  std::map<std::byte*, std::size_t> live;
  for (int i = 0; i < 2000; ++i) {
    if (random() % 2 == 0 && !live.empty()) {
      auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      gpu.deallocate(victim->first, victim->second);
      live.erase(victim);
      continue;
    }
    const std::size_t bytes = 1 + random() % 30000;
    try {
      auto* block = static_cast<std::byte*>(gpu.allocate(bytes));
      const auto after = live.upper_bound(block);
      ASSERT_TRUE(after == live.end() || block + bytes <= after->first);
      ASSERT_TRUE(after == live.begin() || std::prev(after)->first + std::prev(after)->second <= block);
      live[block] = bytes;
    } catch (const ResourceExhaustedError&) {
    }
  }
  for (const auto& [block, bytes] : live) gpu.deallocate(block, bytes);
  EXPECT_EQ(gpu.bytes_in_use(), 0);
}

// What a session sees of the policy, on a device that this machine has.
struct OnDevice : ::testing::Test {
  static std::unique_ptr<Device> device(VirtualGpu gpu, const GpuOptions& options) {
    return make_virtual_gpu_platform({gpu})->make_device(0, local_device_name("GPU", 0), options);
  }
};

TEST_F(OnDevice, MemoryCanBeWrittenToItsLastByte) {
  const auto gpu = device({.total_bytes = 8 * kMiB}, {.per_process_gpu_memory_fraction = 1});
  void* const block = gpu->allocator().allocate(8 * kMiB);
  std::byte* const written = gpu->alias(block, 8 * kMiB, true);
  const std::byte* const read = gpu->alias(block, 8 * kMiB, false);
  ASSERT_NE(written, nullptr);
  std::memset(written, 1, 8 * kMiB);
  EXPECT_EQ(std::count(read, read + 8 * kMiB, std::byte{1}), 8 * kMiB);
  EXPECT_EQ(gpu->alias(block, 8 * kMiB + 1, true), nullptr);
  gpu->allocator().deallocate(block, 8 * kMiB);
}

TEST_F(OnDevice, WhatOthersHaveTakenIsMissing) {
  const auto gpu =
      device({.total_bytes = 8 * kMiB, .free_bytes = 4 * kMiB}, {.per_process_gpu_memory_fraction = 1});
  ::testing::internal::CaptureStderr();
  gpu->allocator().allocate(kMiB);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("failed to allocate 8.00M (8388608 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_THAT([&] { gpu->allocator().allocate(6 * kMiB); },
              ThrowsMessage<ResourceExhaustedError>(HasSubstr("virtual GPU 0")));
}

TEST_F(OnDevice, MemoryOfTheHostIsAnotherAddressSpace) {
  const auto gpu = device({.total_bytes = 8 * kMiB}, {});
  EXPECT_FALSE(gpu->has_host_memory());
  EXPECT_TRUE(gpu->runs_cpu_kernels());
}

}  // namespace
}  // namespace kolo
