// Copies to a GPU from memory of the host that it cannot read by itself.
#pragma once

#include <cstddef>
#include <vector>

#include <kolo/core/device/cuda/handles.h>
#include <kolo/core/device/cuda/pinned.h>

namespace kolo {

/// Through two pieces of pinned memory in turns: the GPU copies one while the caller writes the other. CUDA's
/// own copy of such memory may first wait for all that stands in the stream. One thread at a time.
class StagedCopies {
 public:
  /// On `stream`, of the GPU whose pinned memory it is. All outlive this.
  StagedCopies(const CudaApi& api, PinnedAllocator& memory, cudaStream_t stream);
  ~StagedCopies();
  StagedCopies(const StagedCopies&) = delete;
  StagedCopies& operator=(const StagedCopies&) = delete;

  /// Enqueues the copy and returns when all of `source` has been read, with the GPU current; or false, and
  /// nothing is enqueued, where the stream takes it as it is: pinned memory, little memory, which CUDA takes
  /// into the call, and all where the system gives no pinned memory. Throws as check_cuda.
  bool copy(std::byte* target, const std::byte* source, std::size_t bytes);

 private:
  struct Piece {
    std::byte* memory;
    CudaEvent sent;
    bool was_sent = false;
  };
  bool has_pieces();
  void wait_until_read(Piece& piece) const;

  const CudaApi& api_;
  PinnedAllocator& memory_;
  cudaStream_t const stream_;
  std::vector<Piece> pieces_;
  std::size_t turn_ = 0;
  bool is_memory_short_ = false;
};

}  // namespace kolo
