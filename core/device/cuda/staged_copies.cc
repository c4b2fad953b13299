#include <kolo/core/device/cuda/staged_copies.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr std::size_t kTakenIntoTheCall = std::size_t{64} << 10;  // by CUDA
constexpr std::size_t kPieces = 2;

}  // namespace

StagedCopies::StagedCopies(const CudaApi& api, PinnedAllocator& memory, cudaStream_t stream)
    : api_(api), memory_(memory), stream_(stream) {}

// Who gives pinned memory back to the system waits for its GPU.
StagedCopies::~StagedCopies() {
  for (const Piece& piece : pieces_) memory_.deallocate(piece.memory, kPieceBytes);
}

bool StagedCopies::copy(std::byte* target, const std::byte* source, std::size_t bytes) {
  if (bytes <= kTakenIntoTheCall) return false;
  // Asked each time, some 0.2 µs: memory that has been given back may have the address of pinned memory.
  cudaPointerAttributes of = {};
  check_cuda(api_.pointer_get_attributes(&of, source), "cudaPointerGetAttributes");
  if (of.type != cudaMemoryTypeUnregistered || !has_pieces()) return false;
  for (std::size_t at = 0; at < bytes; at += kPieceBytes) {
    const std::size_t part = std::min(kPieceBytes, bytes - at);
    Piece& piece = pieces_[turn_++ % kPieces];
    wait_until_read(piece);
    std::memcpy(piece.memory, source + at, part);
    check_cuda(api_.memcpy_async(target + at, piece.memory, part, cudaMemcpyHostToDevice, stream_),
               "cudaMemcpyAsync to the GPU");
    const cudaError_t code = api_.event_record(piece.sent.get(), stream_);
    if (code != cudaSuccess)
      api_.stream_synchronize(stream_);  // else nobody knew when the piece has been read
    check_cuda(code, "cudaEventRecord");
    piece.was_sent = true;
  }
  return true;
}

bool StagedCopies::has_pieces() {
  if (is_memory_short_ || pieces_.size() == kPieces) return !is_memory_short_;
  const MemoryOwner owner("copies of ordinary memory");
  try {
    while (pieces_.size() < kPieces) {
      CudaEvent sent(api_);
      pieces_.push_back({static_cast<std::byte*>(memory_.allocate_pinned(kPieceBytes)), std::move(sent)});
    }
  } catch (const ResourceExhaustedError&) {  // CUDA has memory of its own for it
    is_memory_short_ = true;
  }
  return !is_memory_short_;
}

// It takes some 20 µs, less than a thread takes to wake up.
void StagedCopies::wait_until_read(Piece& piece) const {
  if (!piece.was_sent) return;
  cudaError_t code = cudaSuccess;
  while ((code = api_.event_query(piece.sent.get())) == cudaErrorNotReady) {
    api_.get_last_error();  // else the next launch would report it as its own
    std::this_thread::yield();
  }
  check_cuda(code, "cudaEventQuery");
}

}  // namespace kolo
