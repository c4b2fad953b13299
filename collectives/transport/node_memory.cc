#include <kolo/collectives/transport/node_memory.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <utility>

#include <kolo/collectives/transport/memory_file.h>
#include <kolo/core/base/error.h>

namespace kolo {

FreeRanges::FreeRanges(std::int64_t bytes) {
  if (bytes > 0) add(0, bytes);
}

void FreeRanges::add(std::int64_t offset, std::int64_t bytes) {
  by_offset_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
  free_bytes_ += bytes;
}

void FreeRanges::remove(std::int64_t offset, std::int64_t bytes) {
  by_offset_.erase(offset);
  by_size_.erase({bytes, offset});
  free_bytes_ -= bytes;
}

std::optional<std::int64_t> FreeRanges::allocate(std::int64_t bytes, std::int64_t alignment) {
  for (auto it = by_size_.lower_bound({bytes, 0}); it != by_size_.end(); ++it) {
    const auto [size, begin] = *it;
    const std::int64_t offset = (begin + alignment - 1) / alignment * alignment;
    const std::int64_t rest = begin + size - (offset + bytes);
    if (rest < 0) continue;
    remove(begin, size);
    if (offset > begin) add(begin, offset - begin);
    if (rest > 0) add(offset + bytes, rest);
    return offset;
  }
  return std::nullopt;
}

void FreeRanges::free(std::int64_t offset, std::int64_t bytes) {
  auto next = by_offset_.lower_bound(offset);
  if (next != by_offset_.begin()) {
    const auto [before, size] = *std::prev(next);
    if (before + size == offset) {
      remove(before, size);
      offset = before;
      bytes += size;
    }
  }
  next = by_offset_.lower_bound(offset);
  if (next != by_offset_.end() && next->first == offset + bytes) {
    const auto size = next->second;
    remove(next->first, size);
    bytes += size;
  }
  add(offset, bytes);
}

namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
constexpr std::int64_t kLeastBytes = std::int64_t{64} << 20;
// Freed blocks of this size give their pages back.
constexpr std::int64_t kReturnedBytes = std::int64_t{64} << 10;

std::int64_t rounded(std::size_t bytes) {
  const auto alignment = static_cast<std::int64_t>(kAlignment);
  return std::max(alignment, (static_cast<std::int64_t>(bytes) + alignment - 1) / alignment * alignment);
}

std::int64_t alignment_of(std::int64_t bytes) {
  if (bytes >= 2 * kHugePage) return kHugePage;
  return bytes >= kPage ? kPage : static_cast<std::int64_t>(kAlignment);
}

std::int64_t machine_bytes() {
  return std::int64_t{sysconf(_SC_PHYS_PAGES)} * std::int64_t{sysconf(_SC_PAGESIZE)};
}

// Beyond it ftruncate() does not fail: it ends the process by a signal.
std::int64_t file_size_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return INT64_MAX;
  return static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
}

}  // namespace

std::optional<MemoryMapping> MemoryMapping::of(int file, std::int64_t bytes) {
  void* begin = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_NORESERVE, file, 0);
  if (begin == MAP_FAILED) return std::nullopt;
  madvise(begin, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // a hint
  MemoryMapping mapping;
  mapping.begin_ = static_cast<std::byte*>(begin);
  mapping.bytes_ = bytes;
  return mapping;
}

MemoryMapping::MemoryMapping(MemoryMapping&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MemoryMapping& MemoryMapping::operator=(MemoryMapping&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MemoryMapping::~MemoryMapping() {
  if (begin_ != nullptr) munmap(begin_, static_cast<std::size_t>(bytes_));
}

NodeMemory::NodeMemory(std::int64_t most_bytes) {
  file_ = make_memory_file();
  std::int64_t bytes = std::min({machine_bytes(), most_bytes, file_size_limit()}) / kHugePage * kHugePage;
  int reason = 0;
  for (; bytes >= kLeastBytes; bytes = bytes / 2 / kHugePage * kHugePage) {
    if (ftruncate(file_, bytes) == 0) {
      if (auto mapping = MemoryMapping::of(file_, bytes)) {
        mapping_ = std::move(*mapping);
        break;
      }
    }
    reason = errno;
  }
  if (mapping_.begin() == nullptr) {
    close(file_);
    throw UnavailableError(
        "memory for the ranks of a node: the limits of the process leave less than {} MiB{}",
        kLeastBytes >> 20, reason == 0 ? "" : fmt::format(" ({})", strerror(reason)));
  }
  std::random_device random;
  address_ = {.process = getpid(), .file = file_, .bytes = bytes, .proof = {}};
  for (auto& word : address_.proof) word = std::uint64_t{random()} << 32 | random();
  std::memcpy(mapping_.begin(), address_.proof.data(), sizeof address_.proof);
  MutexLock lock(mutex_);
  arena_ = FreeRanges(bytes);
  arena_.allocate(kPage, kPage);  // the proof: offset 0 is no block
}

NodeMemory::~NodeMemory() { close(file_); }

std::optional<std::int64_t> NodeMemory::offset_of(const void* place, std::int64_t bytes) const {
  const auto first = reinterpret_cast<std::uintptr_t>(mapping_.begin());
  const auto asked = reinterpret_cast<std::uintptr_t>(place);
  const bool within = asked >= first && bytes <= mapping_.bytes() &&
                      asked - first <= static_cast<std::uintptr_t>(mapping_.bytes() - bytes);
  if (!within) return std::nullopt;
  return static_cast<std::int64_t>(asked - first);
}

std::byte* NodeMemory::allocate_shared(std::size_t bytes) {
  const std::int64_t size = rounded(bytes);
  if (size < static_cast<std::int64_t>(bytes)) return nullptr;
  free_unused();
  MutexLock lock(mutex_);
  const auto offset = arena_.allocate(size, alignment_of(size));
  return offset ? mapping_.begin() + *offset : nullptr;
}

void* NodeMemory::allocate(std::size_t bytes) {
  std::byte* block = allocate_shared(bytes);
  return block != nullptr ? block : cpu_allocator().allocate(bytes);
}

void NodeMemory::deallocate(void* block, std::size_t bytes) noexcept {
  const auto offset = offset_of(block, 0);
  if (!offset) {
    cpu_allocator().deallocate(block, bytes);
    return;
  }
  const std::int64_t size = rounded(bytes);
  // A block of that size begins at a page, whose rest nobody else has.
  if (size >= kReturnedBytes)
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, *offset, size / kPage * kPage);
  MutexLock lock(mutex_);
  arena_.free(*offset, size);
}

void NodeMemory::free_when(std::byte* block, std::size_t bytes, std::function<bool()> unused) {
  {
    MutexLock lock(mutex_);
    closing_.push_back({block, bytes, std::move(unused)});
  }
  free_unused();
}

void NodeMemory::free_unused() {
  std::vector<Closing> unused;
  {
    MutexLock lock(mutex_);
    const auto first =
        std::stable_partition(closing_.begin(), closing_.end(), [](const Closing& c) { return !c.unused(); });
    unused.assign(std::make_move_iterator(first), std::make_move_iterator(closing_.end()));
    closing_.erase(first, closing_.end());
  }
  for (const auto& closing : unused) deallocate(closing.block, closing.bytes);
}

std::shared_ptr<const MemoryMapping> NodeView::map(const NodeMemory::Address& peer) {
  const std::string path = fmt::format("/proc/{}/fd/{}", peer.process, peer.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (file < 0) throw UnavailableError("memory of process {}: {}: {}", peer.process, path, strerror(errno));
  auto mapping = lseek(file, 0, SEEK_END) == peer.bytes ? MemoryMapping::of(file, peer.bytes) : std::nullopt;
  const int reason = errno;
  close(file);
  if (!mapping) throw UnavailableError("memory of process {}: mmap: {}", peer.process, strerror(reason));
  madvise(mapping->begin(), static_cast<std::size_t>(mapping->bytes()),
          MADV_DONTDUMP);  // its owner's to dump
  // In another PID namespace the number means another process.
  if (std::memcmp(mapping->begin(), peer.proof.data(), sizeof peer.proof) != 0)
    throw UnavailableError("memory of process {}: {} is another process's", peer.process, path);
  return std::make_shared<MemoryMapping>(std::move(*mapping));
}

NodeView NodeView::of(const std::vector<int>& places) const {
  NodeView view;
  view.own_ = own_;
  for (const int place : places) {
    if (place == self_) view.self_ = view.size();
    view.peers_.push_back(peers_[place]);
  }
  return view;
}

}  // namespace kolo
