#include <kolo/collectives/transport/open_files.h>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace kolo::detail {
namespace {

// With the limits as they were afterwards.
class OpenFiles : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0); }
  void TearDown() override { setrlimit(RLIMIT_NOFILE, &before_); }
  static void allow(rlim_t soft) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = soft;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  static rlim_t soft() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  }
  rlimit before_{};
};

TEST_F(OpenFiles, StayAsTheyAreWhereTheyAreEnough) {
  allow(100);
  EXPECT_EQ(allow_connections(36), "");
  EXPECT_EQ(soft(), 100U);
  allow(32);
  EXPECT_EQ(allow_connections(0), "") << "one host";
  EXPECT_EQ(soft(), 32U);
}

TEST_F(OpenFiles, AreRaisedToWhatIsNeeded) {
  allow(100);
  EXPECT_EQ(allow_connections(37), "");
  EXPECT_EQ(soft(), 101U);
}

TEST_F(OpenFiles, AreToldWhereTheHardLimitIsTooLow) {
  const auto ranks = static_cast<int>(before_.rlim_max);
  if (before_.rlim_max > (1 << 30)) GTEST_SKIP() << "no limit is set";
  EXPECT_EQ(allow_connections(ranks), std::to_string(ranks) + " files may be open; " + std::to_string(ranks) +
                                          " ranks on other hosts may need " + std::to_string(ranks + 64) +
                                          " (ulimit -n)");
}

}  // namespace
}  // namespace kolo::detail
