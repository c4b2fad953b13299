#include <kolo/core/base/elastic_restart.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

class Restart : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("KOLO_RESTART"); }
};

TEST_F(Restart, IsNoneInTheFirstStart) { EXPECT_EQ(elastic_restart(), ElasticRestart{}); }

TEST_F(Restart, IsWhatKolorunTells) {
  const ElasticRestart whole = {
      .number = 2, .lost_hosts = {"node3", "fe80::1"}, .ranks_before = 6, .last_step = 84, .seconds = 7.9};
  const ElasticRestart grown = {.number = 1, .ranks_before = 4};
  EXPECT_EQ(detail::to_text(whole), "2:6:84:7.9:node3,fe80::1");
  for (const ElasticRestart& restart : {whole, grown}) {
    setenv("KOLO_RESTART", detail::to_text(restart).c_str(), 1);
    EXPECT_EQ(elastic_restart(), restart);
  }
}

TEST_F(Restart, IsRefusedWhereItIsNoRestart) {
  for (const char* text : {"1", "1:2:3:4", "0:2:3:4:", "1:0:3:4:", "1:2:x:4:", "1:2:3:x:", "a:2:3:4:"}) {
    setenv("KOLO_RESTART", text, 1);
    EXPECT_THAT([] { elastic_restart(); },
                ::testing::ThrowsMessage<InvalidArgumentError>(::testing::HasSubstr("KOLO_RESTART=")))
        << text;
  }
}

}  // namespace
}  // namespace kolo
