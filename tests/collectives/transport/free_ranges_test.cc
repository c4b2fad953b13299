#include <kolo/collectives/transport/free_ranges.h>

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace kolo {
namespace {

TEST(FreeRanges, TakesTheSmallestPieceThatIsLargeEnough) {
  FreeRanges arena(1000);
  const auto a = arena.allocate(100, 1), b = arena.allocate(10, 1), c = arena.allocate(50, 1);
  arena.allocate(10, 1);
  arena.free(*a, 100);
  arena.free(*c, 50);
  EXPECT_EQ(arena.allocate(40, 1), c);
  EXPECT_EQ(b, 100);
}

TEST(FreeRanges, JoinsWhatComesBack) {
  FreeRanges arena(300);
  const auto a = arena.allocate(100, 1), b = arena.allocate(100, 1), c = arena.allocate(100, 1);
  EXPECT_FALSE(arena.allocate(1, 1));
  arena.free(*a, 100);
  arena.free(*c, 100);
  EXPECT_FALSE(arena.allocate(200, 1));
  arena.free(*b, 100);
  EXPECT_EQ(arena.allocate(300, 1), 0);
}

TEST(FreeRanges, AlignsAndKeepsWhatLiesBefore) {
  FreeRanges arena(256);
  EXPECT_EQ(arena.allocate(1, 1), 0);
  EXPECT_EQ(arena.allocate(64, 64), 64);
  EXPECT_EQ(arena.allocate(63, 1), 1);
}

TEST(FreeRanges, PiecesNeverOverlapAndAllComeBack) {
  FreeRanges arena(1 << 20);
  std::mt19937 random(1);
  std::map<std::int64_t, std::int64_t> taken;
  for (int i = 0; i < 5000; ++i) {
    if (random() % 2 == 0 || taken.empty()) {
      const std::int64_t bytes = 1 + random() % 5000, alignment = 1 << random() % 8;
      const auto offset = arena.allocate(bytes, alignment);
      if (!offset) continue;
      EXPECT_EQ(*offset % alignment, 0);
      const auto after = taken.lower_bound(*offset);
      if (after != taken.end()) {
        EXPECT_LE(*offset + bytes, after->first);
      }
      if (after != taken.begin()) {
        EXPECT_LE(std::prev(after)->first + std::prev(after)->second, *offset);
      }
      taken[*offset] = bytes;
    } else {
      const auto it = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
      arena.free(it->first, it->second);
      taken.erase(it);
    }
  }
  for (const auto& [offset, bytes] : taken) arena.free(offset, bytes);
  EXPECT_EQ(arena.free_bytes(), 1 << 20);
  EXPECT_EQ(arena.allocate(1 << 20, 1), 0);
}

}  // namespace
}  // namespace kolo
