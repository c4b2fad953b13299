// Where a tensor's bytes come from: one allocator per device, and arenas that a compiled plan cuts up.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace kolo {

/// Every block starts at a multiple of this many bytes: a cache line, and the widest vector register.
inline constexpr std::size_t kAlignment = 64;

/// Any thread.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual std::string name() const = 0;
  /// Uninitialised. Never null: throws ResourceExhaustedError naming allocator and bytes. bytes = 0 is legal.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void deallocate(void* block, std::size_t bytes) noexcept = 0;
};

/// Host memory; blocks of 4 MiB and more ask for huge pages.
Allocator& cpu_allocator();

/// Owns one block. Shared by the tensors that are views of it; freed with the last, on any thread. Whoever
/// writes its bytes keeps other threads away.
class Buffer {
 public:
  Buffer(Allocator& allocator, std::size_t bytes);
  /// Borrows memory that the caller keeps alive, or that `keep_alive` does.
  Buffer(void* block, std::size_t bytes, std::shared_ptr<void> keep_alive = nullptr);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// Whose block it is; nullptr where it is borrowed.
  const Allocator* allocator() const { return allocator_; }

 private:
  Allocator* allocator_ = nullptr;
  std::byte* data_;
  std::size_t bytes_;
  std::shared_ptr<void> keep_alive_;
};

}  // namespace kolo
