#include <kolo/core/tensor/unused_pages.h>

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include <kolo/core/tensor/allocator.h>

namespace kolo {
namespace {

constexpr std::size_t kBytes = std::size_t{16} << 20;

// How many pages of a block that begins at a page's start are in memory.
std::ptrdiff_t resident_pages(void* block, std::size_t bytes) {
  std::vector<unsigned char> pages(bytes / static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(mincore(block, bytes, pages.data()), 0);
  return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
}

TEST(UnusedPages, GoBackToTheSystemAndComeAgainWhenTheyAreWritten) {
  Buffer buffer(cpu_allocator(), kBytes);
  std::memset(buffer.data(), 1, kBytes);
  EXPECT_GT(resident_pages(buffer.data(), kBytes), 0);
  give_pages_back(buffer.data(), kBytes);
  EXPECT_EQ(resident_pages(buffer.data(), kBytes), 0);
  std::memset(buffer.data(), 2, kBytes);
  EXPECT_EQ(buffer.data()[kBytes - 1], std::byte{2});
}

TEST(UnusedPages, LeaveWhatStandsBesideTheBlock) {
  Buffer buffer(cpu_allocator(), kBytes);
  std::memset(buffer.data(), 1, kBytes);
  give_pages_back(buffer.data() + 100, kBytes - 200);
  for (std::size_t i = 0; i < 100; ++i) {
    ASSERT_EQ(buffer.data()[i], std::byte{1}) << i;
    ASSERT_EQ(buffer.data()[kBytes - 1 - i], std::byte{1}) << i;
  }
}

TEST(UnusedPages, OfASmallBlockStay) {
  Buffer buffer(cpu_allocator(), 1000);
  std::memset(buffer.data(), 1, 1000);
  give_pages_back(buffer.data(), 1000);
  EXPECT_EQ(buffer.data()[500], std::byte{1});
}

}  // namespace
}  // namespace kolo
