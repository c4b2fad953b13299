// What memory of the host a plan holds between its runs.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

std::int64_t resident_bytes() {
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(FrameMemory, GoesBackToTheSystemAfterTheFirstRunAndStaysAfterTheSecond) {
#ifdef KOLO_THREAD_SANITIZER
  GTEST_SKIP() << "what the sanitizer notes of the memory stays resident";
#endif
  Graph graph;
  const Scope s(graph);
  constexpr std::int64_t kElements = std::int64_t{1} << 25;  // 128 MiB
  const Output x = s.add("Square", {fill(s, DType::f32, {kElements}, 3)});
  const Output largest = reduce_max(s, x);
  Session session(graph);
  const std::int64_t before = resident_bytes();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(session.run(largest).value<float>(), 9);
    const std::int64_t kept = resident_bytes() - before;
    if (i == 0) EXPECT_LT(kept, kElements * 2);
    else EXPECT_GT(kept, kElements * 2);
  }
}

}  // namespace
}  // namespace kolo
