// Memory that the ranks of a node see of each other. Each process has one sparse file in memory, as long as
// it may ever need, and maps those of its peers as a whole: a place in it is found by adding an offset, and
// nothing is registered buffer by buffer. It has no name (memory_file.h), so neither its size nor its life
// depends on a file system such as /dev/shm.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo {

/// Cuts pieces out of a long range of bytes and takes them back.
/// Knows offsets only, not the memory behind them. Best fit: the smallest free piece that is large enough;
/// pieces that come back join their neighbours. One thread at a time.
class FreeRanges {
 public:
  explicit FreeRanges(std::int64_t bytes);
  /// The offset of `bytes` (more than 0), a multiple of `alignment` (a power of two); nothing if no free
  /// piece is large enough.
  std::optional<std::int64_t> allocate(std::int64_t bytes, std::int64_t alignment);
  /// What allocate() returned for as many bytes.
  void free(std::int64_t offset, std::int64_t bytes);
  std::int64_t free_bytes() const { return free_bytes_; }

 private:
  void add(std::int64_t offset, std::int64_t bytes);
  void remove(std::int64_t offset, std::int64_t bytes);

  std::map<std::int64_t, std::int64_t> by_offset_;           // offset → bytes, of the free pieces
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  // (bytes, offset) of the same
  std::int64_t free_bytes_ = 0;
};

/// A file in memory, mapped. Move-only. One thread at a time; what is mapped, any.
class MemoryMapping {
 public:
  MemoryMapping() = default;
  /// Maps `bytes` of an open file for reading and writing; nothing where the system refuses.
  static std::optional<MemoryMapping> of(int file, std::int64_t bytes);
  MemoryMapping(MemoryMapping&& other) noexcept;
  MemoryMapping& operator=(MemoryMapping&& other) noexcept;
  ~MemoryMapping();
  std::byte* begin() const { return begin_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* begin_ = nullptr;
  std::int64_t bytes_ = 0;
};

/// This process's part: also an allocator, whose blocks peers can reach. Any thread.
class NodeMemory final : public Allocator {
 public:
  /// How a process of the same host finds it. Sent to peers as it stands.
  struct Address {
    std::int64_t process = 0;
    std::int64_t file = 0;
    std::int64_t bytes = 0;
    std::array<std::uint64_t, 2> proof{};  // what the file begins with: tells it from another's
  };

  /// As long as the machine's memory, or `most_bytes`, or the limits of the process allow; memory is taken
  /// only where it is written. Throws UnavailableError where the system has no such memory.
  explicit NodeMemory(std::int64_t most_bytes = std::int64_t{1} << 44);
  ~NodeMemory() override;
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  const Address& address() const { return address_; }
  const MemoryMapping& mapping() const { return mapping_; }
  /// Where `bytes` at `place` begin in it; nothing if they lie, or end, elsewhere.
  std::optional<std::int64_t> offset_of(const void* place, std::int64_t bytes) const;

  std::string name() const override { return "node"; }
  /// From the file; what does not fit there is ordinary memory, which works as well, but slower.
  void* allocate(std::size_t bytes) override KOLO_EXCLUDES(mutex_);
  void deallocate(void* block, std::size_t bytes) noexcept override KOLO_EXCLUDES(mutex_);
  /// From the file alone: nothing if it is exhausted. Freed by deallocate().
  std::byte* allocate_shared(std::size_t bytes) KOLO_EXCLUDES(mutex_);
  /// Frees such a block as soon as `unused` says that no peer looks at it any more; asked now and whenever
  /// another block is asked for.
  void free_when(std::byte* block, std::size_t bytes, std::function<bool()> unused) KOLO_EXCLUDES(mutex_);

 private:
  struct Closing {
    std::byte* block;
    std::size_t bytes;
    std::function<bool()> unused;
  };
  void free_unused() KOLO_EXCLUDES(mutex_);

  Address address_;
  int file_ = -1;
  MemoryMapping mapping_;
  Mutex mutex_;
  FreeRanges arena_ KOLO_GUARDED_BY(mutex_){0};
  std::vector<Closing> closing_ KOLO_GUARDED_BY(mutex_);
};

/// The memory of some processes of a node, as this one sees it. Cheap to copy. Any thread.
class NodeView {
 public:
  NodeView() = default;
  /// own: of the process at place `self` of the list.
  NodeView(std::shared_ptr<NodeMemory> own, int self, std::vector<std::shared_ptr<const MemoryMapping>> peers)
      : own_(std::move(own)), self_(self), peers_(std::move(peers)) {}
  /// Maps a peer's memory. Throws UnavailableError where that cannot be: another user's process, another PID
  /// namespace, too little address space.
  static std::shared_ptr<const MemoryMapping> map(const NodeMemory::Address& peer);

  explicit operator bool() const { return own_ != nullptr; }
  int self() const { return self_; }
  int size() const { return static_cast<int>(peers_.size()); }
  NodeMemory& own() const { return *own_; }
  /// Where process `place` of the list has its memory, in this one's addresses.
  std::byte* begin(int place) const {
    return place == self_ ? own_->mapping().begin() : peers_[place]->begin();
  }
  /// Of some of its processes, this one among them, in the order of the list.
  NodeView of(const std::vector<int>& places) const;

 private:
  std::shared_ptr<NodeMemory> own_;
  int self_ = 0;
  std::vector<std::shared_ptr<const MemoryMapping>> peers_;  // the own place is empty
};

}  // namespace kolo
