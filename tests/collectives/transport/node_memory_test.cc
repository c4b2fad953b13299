#include <kolo/collectives/transport/node_memory.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/collectives/transport/node_ranks.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::int64_t resident_shared_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("RssShmem:", 0) == 0) return std::stoll(line.substr(9));
  return -1;
}

TEST(NodeMemory, IsSeenByAPeerAtTheSameOffset) {
  NodeRanks ranks(2);
  auto* const text = static_cast<char*>(ranks.memory(0).allocate(100));
  std::strcpy(text, "hello");
  const auto offset = ranks.memory(0).offset_of(text, 100);
  ASSERT_TRUE(offset);
  auto* const seen = reinterpret_cast<char*>(ranks.view(1).begin(0) + *offset);
  EXPECT_NE(seen, text);
  EXPECT_STREQ(seen, "hello");
  seen[0] = 'j';
  EXPECT_STREQ(text, "jello");
}

TEST(NodeMemory, BlocksAreAligned) {
  NodeMemory memory(256 * kMiB);
  for (const std::size_t bytes : {0, 1, 63, 65, 5000, 100000}) {
    const auto* block = memory.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % kAlignment, 0U) << bytes;
    EXPECT_TRUE(memory.offset_of(block, static_cast<std::int64_t>(bytes)));
  }
}

enum class Pages { small, huge, no_file_system };

// What 8 MiB of node memory lie in.
Pages pages_of_block() {
  const NodeMemory memory(256 * kMiB);
  const std::string file = "/proc/self/fd/" + std::to_string(memory.address().file);
  if (std::filesystem::read_symlink(file).string().find("memfd") != std::string::npos)
    return Pages::no_file_system;
  std::memset(memory.mapping().begin() + 8 * kMiB, 1, 8 * kMiB);
  std::ifstream mappings("/proc/self/smaps");
  std::int64_t kib = 0;
  for (std::string line; std::getline(mappings, line);)
    if (line.rfind("ShmemPmdMapped:", 0) == 0) kib += std::stoll(line.substr(15));
  return kib * 1024 >= 8 * kMiB ? Pages::huge : Pages::small;
}

TEST(NodeMemory, LiesInHugePagesWhereTheSystemGrantsThem) {
  const Pages pages = pages_of_block();
  if (pages == Pages::no_file_system) GTEST_SKIP() << "this process may mount no file system";
  EXPECT_EQ(pages, Pages::huge);
}

TEST(NodeMemory, LiesInHugePagesForUsersWithoutPrivileges) {
  if (geteuid() != 0) GTEST_SKIP() << "the test before was of such a user";
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    const bool changed = setgid(kNobody) == 0 && setuid(kNobody) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0;
    _exit(changed ? static_cast<int>(pages_of_block()) : -1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == static_cast<int>(Pages::no_file_system))
    GTEST_SKIP() << "users may make no namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(Pages::huge));
}

TEST(NodeMemory, TakesMemoryOnlyWhereItIsWrittenAndGivesItBack) {
  NodeMemory memory(1024 * kMiB);
  const auto before = resident_shared_kib();
  void* block = memory.allocate(512 * kMiB);
  EXPECT_LT(resident_shared_kib() - before, 1024);
  std::memset(block, 1, 8 * kMiB);
  EXPECT_GE(resident_shared_kib() - before, 8 * 1024);
  memory.deallocate(block, 512 * kMiB);
  EXPECT_LT(resident_shared_kib() - before, 1024);
}

TEST(NodeMemory, GivesOrdinaryMemoryWhenItIsExhausted) {
  NodeMemory memory(64 * kMiB);
  void* block = memory.allocate(100 * kMiB);
  EXPECT_FALSE(memory.offset_of(block, 100 * kMiB));
  EXPECT_EQ(memory.allocate_shared(100 * kMiB), nullptr);
  memory.deallocate(block, 100 * kMiB);
}

TEST(NodeMemory, KnowsWhatEndsOutsideOfIt) {
  NodeMemory memory(64 * kMiB);
  auto* block = static_cast<std::byte*>(memory.allocate(100));
  EXPECT_FALSE(memory.offset_of(block, 65 * kMiB));
  EXPECT_FALSE(memory.offset_of(block - 65 * kMiB, 1));
  int elsewhere = 0;
  EXPECT_FALSE(memory.offset_of(&elsewhere, 4));
}

TEST(NodeMemory, BlockThatPeersStillReadIsFreedLater) {
  NodeMemory memory(64 * kMiB);
  std::byte* block = memory.allocate_shared(1000);
  bool unused = false;
  memory.free_when(block, 1000, [&] { return unused; });
  std::byte* other = memory.allocate_shared(1000);
  EXPECT_NE(other, block);
  unused = true;
  EXPECT_EQ(memory.allocate_shared(1000), block);
}

TEST(NodeMemory, AnotherFileIsNotTakenForAPeers) {
  const NodeMemory memory(64 * kMiB), other(64 * kMiB);
  auto address = memory.address();
  address.file = other.address().file;
  EXPECT_THROW(NodeView::map(address), UnavailableError);
  address.file = 100000;
  EXPECT_THROW(NodeView::map(address), UnavailableError);
}

// The limits of a process (ulimit) make it smaller, or are an error; never a signal.
TEST(NodeMemory, StaysWithinTheProcessLimits) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit file_size{100U << 20, 100U << 20};
    setrlimit(RLIMIT_FSIZE, &file_size);
    const NodeMemory within;
    const bool smaller = within.address().bytes <= 100 * kMiB;
    const rlimit none{1U << 20, 1U << 20};
    setrlimit(RLIMIT_FSIZE, &none);
    try {
      const NodeMemory impossible;
    } catch (const UnavailableError&) {
      _exit(smaller ? 0 : 1);
    }
    _exit(2);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

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
