// More than 2^31 elements and bytes between tasks.
#include <gtest/gtest.h>

#include <unistd.h>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/cluster/servers_in_process.h"

namespace kolo {
namespace {

class LargeVariable : public ServersTest {};

TEST_F(LargeVariable, ComesWholeFromAnotherTask) {
  constexpr std::int64_t kNeeded = std::int64_t{16} << 30, kElements = (std::int64_t{1} << 31) + 16;
  if (::sysconf(_SC_AVPHYS_PAGES) * ::sysconf(_SC_PAGESIZE) < kNeeded)
    GTEST_SKIP() << "less than 16 GiB of memory are free";
  Graph graph;
  const Scope s = Scope(graph).device("/job:ps/task:0");
  const Variable v(s.named("v"), fill(s, DType::u8, Shape{kElements}, 7));
  Session session(graph, target("worker0"), {.operation_timeout_in_ms = 240'000});
  session.run(v.initializer());
  const Tensor value = session.run(v.read());
  ASSERT_EQ(value.elements(), kElements);
  const std::uint8_t* const data = value.data<std::uint8_t>();
  for (const std::int64_t at :
       {std::int64_t{0}, kElements / 2, kElements - 17, kElements - 16, kElements - 1})
    EXPECT_EQ(data[at], 7) << at;
}

}  // namespace
}  // namespace kolo
