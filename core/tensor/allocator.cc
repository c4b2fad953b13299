#include <kolo/core/tensor/allocator.h>

#include <sys/mman.h>

#include <cstdlib>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

class CpuAllocator final : public Allocator {
 public:
  std::string name() const override { return "cpu"; }

  void* allocate(std::size_t bytes) override {
    const bool huge = bytes >= 2 * kHugePage;
    const std::size_t alignment = huge ? kHugePage : kAlignment;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* block =
        rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
    if (block == nullptr) throw ResourceExhaustedError("the cpu allocator could not get {} bytes", bytes);
    // A hint: without huge pages the block works as well. What does not fill one is left to small pages: for
    // a matrix of 9 MiB a last huge page would take a tenth more memory.
    if (huge) madvise(block, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
    return block;
  }

  void deallocate(void* block, std::size_t) noexcept override { std::free(block); }
};

}  // namespace

Allocator& cpu_allocator() {
  static auto* const allocator = new CpuAllocator;  // outlives every static tensor
  return *allocator;
}

Buffer::Buffer(Allocator& allocator, std::size_t bytes)
    : allocator_(&allocator), data_(static_cast<std::byte*>(allocator.allocate(bytes))), bytes_(bytes) {}

Buffer::Buffer(void* block, std::size_t bytes, std::shared_ptr<void> keep_alive)
    : data_(static_cast<std::byte*>(block)), bytes_(bytes), keep_alive_(std::move(keep_alive)) {}

Buffer::~Buffer() {
  if (allocator_ != nullptr) allocator_->deallocate(data_, bytes_);
}

}  // namespace kolo
