#include <gtest/gtest.h>

#include <unistd.h>

#include <string>

#include <kolo/core/base/process.h>

namespace kolo {
namespace {

std::string this_host() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

TEST(Process, IsTheOnlyRankOfThisHostUntilInit) {
  const ProcessInfo& alone = process();
  EXPECT_EQ(alone.rank, 0);
  EXPECT_EQ(alone.size, 1);
  EXPECT_EQ(alone.local_rank, 0);
  EXPECT_EQ(alone.local_size, 1);
  EXPECT_EQ(alone.cross_rank, 0);
  EXPECT_EQ(alone.cross_size, 1);
  EXPECT_EQ(alone.node_count, 1);
  EXPECT_TRUE(alone.homogeneous);
  EXPECT_EQ(alone.hostname, this_host());
}

TEST(Process, IsWhatInitFoundUntilShutdown) {
  set_process({.rank = 2, .size = 4, .local_size = 2, .node_count = 2, .hostname = "b"});
  EXPECT_EQ(process().rank, 2);
  EXPECT_EQ(process().size, 4);
  EXPECT_EQ(process().hostname, "b");
  set_process({});
  EXPECT_EQ(process().rank, 0);
  EXPECT_EQ(process().size, 1);
}

}  // namespace
}  // namespace kolo
