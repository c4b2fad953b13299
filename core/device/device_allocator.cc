#include <kolo/core/device/device_allocator.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/device/order_log.h>

namespace kolo {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::size_t kBlockAlignment = 256;  // CUDA's own; coalesced loads need it
constexpr std::size_t kFirstRegion = kMiB;

std::size_t rounded(std::size_t bytes) {
  return std::max(kBlockAlignment, (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment);
}

// "3.66G", as CUDA's failures are reported.
std::string short_size(std::size_t bytes) {
  const auto b = static_cast<double>(bytes);
  if (b >= 1024.0 * kMiB) return fmt::format("{:.2f}G", b / (1024.0 * kMiB));
  if (b >= kMiB) return fmt::format("{:.2f}M", b / kMiB);
  if (b >= 1024) return fmt::format("{:.2f}K", b / 1024);
  return fmt::format("{}B", bytes);
}

thread_local std::string current_owner;

}  // namespace

MemoryOwner::MemoryOwner(std::string name) : outer_(std::exchange(current_owner, std::move(name))) {}
MemoryOwner::~MemoryOwner() { current_owner = std::move(outer_); }

std::int64_t memory_limit(std::int64_t total_bytes, std::int64_t free_bytes, double fraction) {
  if (!(fraction >= 0 && fraction <= 1))
    throw InvalidArgumentError("per_process_gpu_memory_fraction is {}; it must lie between 0 and 1",
                               fraction);
  if (fraction > 0) return static_cast<std::int64_t>(static_cast<double>(total_bytes) * fraction);
  const std::int64_t reserve = free_bytes < 2048 * kMiB ? 225 * kMiB : std::max(300 * kMiB, free_bytes / 20);
  return std::max<std::int64_t>(0, free_bytes - reserve);
}

DeviceAllocator::DeviceAllocator(std::string device, std::unique_ptr<MemorySource> memory,
                                 const GpuOptions& options)
    : device_(std::move(device)),
      memory_(std::move(memory)),
      allow_growth_(options.allow_growth),
      limit_(memory_limit(memory_->total_bytes(), memory_->free_bytes(),
                          options.per_process_gpu_memory_fraction)),
      next_region_(allow_growth_ ? kFirstRegion : static_cast<std::size_t>(limit_)) {}

DeviceAllocator::~DeviceAllocator() {
  for (const auto& [region, bytes] : regions_) memory_->release(region, bytes);
}

void* DeviceAllocator::allocate(std::size_t bytes) {
  MutexLock lock(mutex_);
  const bool overflows = bytes > SIZE_MAX - kBlockAlignment;
  if (!overflows) {
    if (void* block = take(rounded(bytes))) return block;
    if (grow(rounded(bytes)))
      if (void* block = take(rounded(bytes))) return block;
  }
  throw ResourceExhaustedError(
      "{} is out of memory: {} bytes were asked for, {} bytes are in use of the limit of {} bytes ({} "
      "reserved){}{}; "
      "smaller batches or another gpu_options.per_process_gpu_memory_fraction would help",
      device_, bytes, in_use_, limit_, reserved_, owners(), others());
}

std::string DeviceAllocator::owners() const {
  constexpr std::size_t kNamed = 3;
  std::map<std::string, std::size_t> of_owner;
  for (const auto& [address, block] : blocks_)
    if (!block.free && !block.owner.empty()) of_owner[block.owner] += block.bytes;
  std::vector<std::pair<std::size_t, std::string>> largest;
  for (const auto& [owner, bytes] : of_owner) largest.emplace_back(bytes, owner);
  std::sort(largest.rbegin(), largest.rend());
  if (largest.size() > kNamed) largest.resize(kNamed);
  std::string text;
  for (const auto& [bytes, owner] : largest)
    text += fmt::format("{}{} for {}", text.empty() ? "; the most of it: " : ", ", short_size(bytes), owner);
  return text;
}

std::string DeviceAllocator::others() const {
  const std::int64_t total = memory_->total_bytes();
  const std::int64_t taken = total - memory_->free_bytes() - reserved_;
  if (taken < total / 20) return "";  // contexts, and what libraries have taken for this process
  return fmt::format("; {} of the device's {} is what libraries and other processes have",
                     short_size(static_cast<std::size_t>(taken)),
                     short_size(static_cast<std::size_t>(total)));
}

void* DeviceAllocator::take(std::size_t bytes) {
  const auto best = free_.lower_bound({bytes, nullptr});
  if (best == free_.end()) return nullptr;
  const auto block = blocks_.find(best->second);
  free_.erase(best);
  if (block->second.bytes > bytes) {
    const auto rest = blocks_.emplace(block->first + bytes, Block{block->second.bytes - bytes, true, false});
    free_.insert({rest.first->second.bytes, rest.first->first});
    block->second.bytes = bytes;
  }
  block->second.free = false;
  block->second.owner = current_owner;
  in_use_ += static_cast<std::int64_t>(bytes);
  peak_ = std::max(peak_, in_use_);
  return block->first;
}

bool DeviceAllocator::grow(std::size_t bytes) {
  const auto left = static_cast<std::size_t>(limit_ - reserved_) / kBlockAlignment * kBlockAlignment;
  if (bytes > left) return false;
  std::size_t wanted = next_region_;
  while (wanted < bytes) wanted *= 2;
  const std::size_t got = reserve_region(std::min(wanted, left), bytes);
  if (got > 0 && allow_growth_) next_region_ = 2 * wanted;
  return got > 0;
}

// The bytes of the new region; 0 if the device has not even those that are needed.
std::size_t DeviceAllocator::reserve_region(std::size_t wanted, std::size_t needed) {
  for (std::size_t bytes = wanted; bytes >= needed;
       bytes =
           static_cast<std::size_t>(0.9 * static_cast<double>(bytes)) / kBlockAlignment * kBlockAlignment) {
    if (void* region = memory_->reserve(bytes)) {
      regions_.push_back({region, bytes});
      reserved_ += static_cast<std::int64_t>(bytes);
      auto* begin = static_cast<std::byte*>(region);
      blocks_.emplace(begin, Block{bytes, true, true});
      free_.insert({bytes, begin});
      return bytes;
    }
    log_warning("failed to allocate {} ({} bytes) from device: CUDA_ERROR_OUT_OF_MEMORY [{}]",
                short_size(bytes), bytes, device_);
  }
  return 0;
}

void DeviceAllocator::deallocate(void* block, std::size_t) noexcept {
  MutexLock lock(mutex_);
  const auto found = blocks_.find(static_cast<std::byte*>(block));
  in_use_ -= static_cast<std::int64_t>(found->second.bytes);
  if (OrderLog* const log = OrderLog::active()) log->free({block, found->second.bytes});
  set_free(found);
}

void DeviceAllocator::set_free(Blocks::iterator block) {
  block->second.free = true;
  block->second.owner.clear();
  join_with_next(block);
  if (!block->second.begins_region) {
    const auto before = std::prev(block);
    if (before->second.free) {
      free_.erase({before->second.bytes, before->first});
      join_with_next(before);
      block = before;
    }
  }
  free_.insert({block->second.bytes, block->first});
}

// The next block of the same region, if it is free, becomes part of this one.
void DeviceAllocator::join_with_next(Blocks::iterator block) {
  const auto next = std::next(block);
  if (next == blocks_.end() || next->second.begins_region || !next->second.free) return;
  free_.erase({next->second.bytes, next->first});
  block->second.bytes += next->second.bytes;
  blocks_.erase(next);
}

std::int64_t DeviceAllocator::reserved_bytes() const {
  MutexLock lock(mutex_);
  return reserved_;
}

std::int64_t DeviceAllocator::peak_bytes() const {
  MutexLock lock(mutex_);
  return peak_;
}

std::int64_t DeviceAllocator::bytes_in_use() const {
  MutexLock lock(mutex_);
  return in_use_;
}

}  // namespace kolo
