#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Counts what it gives and takes back.
class CountingAllocator final : public Allocator {
 public:
  std::string name() const override { return "counting"; }
  void* allocate(std::size_t bytes) override {
    ++blocks;
    return cpu_allocator().allocate(bytes);
  }
  void deallocate(void* block, std::size_t bytes) noexcept override {
    --blocks;
    freed_bytes += bytes;
    cpu_allocator().deallocate(block, bytes);
  }

  int blocks = 0;
  std::size_t freed_bytes = 0;
};

TEST(CpuAllocator, TakesNoMorePagesThanAreWritten) {
  constexpr std::size_t kBytes = std::size_t{9} << 20, kInHugePages = std::size_t{10} << 20;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const block = cpu_allocator().allocate(kBytes);
  std::memset(block, 1, kBytes);
  std::vector<unsigned char> pages(kInHugePages / page);
  ASSERT_EQ(mincore(block, kInHugePages, pages.data()), 0);
  const auto resident =
      std::count_if(pages.begin(), pages.end(), [](unsigned char state) { return (state & 1) != 0; });
  EXPECT_LE(static_cast<std::size_t>(resident) * page, kBytes);
  cpu_allocator().deallocate(block, kBytes);
}

TEST(CpuAllocator, AlignsBlocksOfAnySizeAndTheyCanBeWrittenToTheEnd) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{65},
        std::size_t{100'000}, (std::size_t{4} << 20) - 1, std::size_t{4} << 20, (std::size_t{4} << 20) + 1}) {
    void* const block = cpu_allocator().allocate(bytes);
    ASSERT_NE(block, nullptr) << bytes;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % kAlignment, 0u) << bytes;
    std::memset(block, 1, bytes);
    cpu_allocator().deallocate(block, bytes);
  }
}

TEST(CpuAllocator, NamesItselfAndTheBytesItCouldNotGet) {
  // Rounding this up to the alignment would wrap around to nothing.
  EXPECT_THAT([] { cpu_allocator().allocate(SIZE_MAX); },
              ThrowsMessage<ResourceExhaustedError>(
                  AllOf(HasSubstr("cpu"), HasSubstr("18446744073709551615 bytes"))));
}

TEST(Buffer, FreesItsBlockWithTheLastOwner) {
  CountingAllocator allocator;
  auto first = std::make_shared<Buffer>(allocator, 100);
  auto second = first;
  first.reset();
  EXPECT_EQ(allocator.blocks, 1);
  EXPECT_EQ(second->bytes(), 100u);
  second.reset();
  EXPECT_EQ(allocator.blocks, 0);
  EXPECT_EQ(allocator.freed_bytes, 100u);
}

TEST(Buffer, KeepsAliveWhatItBorrowsFrom) {
  const auto owner = std::make_shared<int>(7);
  {
    const Buffer borrowed(owner.get(), sizeof(int), owner);
    EXPECT_EQ(owner.use_count(), 2);
    EXPECT_EQ(static_cast<void*>(borrowed.data()), owner.get());
  }
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_EQ(*owner, 7);
}

}  // namespace
}  // namespace kolo
