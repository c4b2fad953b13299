#include <kolo/core/cluster/task_address.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(TaskAddress, IsAHostAndAPort) {
  EXPECT_EQ(task_address_of("node-1.cluster_a:2222"),
            (TaskAddress{.host = "node-1.cluster_a", .port = 2222}));
  EXPECT_EQ(task_address_of("10.0.0.7:0"), (TaskAddress{.host = "10.0.0.7", .port = 0}));
  EXPECT_EQ(task_address_of("h:65535").port, 65535);
}

TEST(TaskAddress, OfIpVersion6StandsInBrackets) {
  EXPECT_EQ(task_address_of("[::1]:80"), (TaskAddress{.host = "::1", .port = 80}));
  EXPECT_EQ(task_address_of("[fe80::1%eth0]:80").host, "fe80::1%eth0");
}

TEST(TaskAddress, MayBeASocketInTheFileSystem) {
  EXPECT_EQ(task_address_of("unix:/run/kolo/a b:5").path, "/run/kolo/a b:5");
  EXPECT_EQ(task_address_of("unix:/" + std::string(106, 'x')).path.size(), 107U);
}

TEST(TaskAddress, HasOneTextForAllWaysToWriteIt) {
  for (const auto& [written, text] :
       {std::pair{"Node1:07", "node1:7"}, {"[0:0:0:0:0:0:0:1]:5", "[::1]:5"}, {"unix:/Tmp/s", "unix:/Tmp/s"}})
    EXPECT_EQ(task_address_of(written).to_string(), text);
}

TEST(TaskAddress, ThatIsMalformedIsRefused) {
  const std::string cut_by_c("h\0:5", 4);
  for (const std::string& text : {std::string(""),
                                  std::string("h"),
                                  std::string(":5"),
                                  std::string("h:"),
                                  std::string("h:x"),
                                  std::string("h:-1"),
                                  std::string("h:65536"),
                                  std::string("h:5:6"),
                                  std::string("h: 5"),
                                  std::string("::1:5"),
                                  std::string("[]:5"),
                                  std::string("[::1]"),
                                  std::string("[h]:5"),
                                  std::string("[::1%]:5"),
                                  std::string("300.1.1.1:5"),
                                  std::string("1.2.3:5"),
                                  std::string("h/x:5"),
                                  std::string("bücher:5"),
                                  std::string("unix:"),
                                  std::string("unix:/"),
                                  std::string("unix:a"),
                                  "unix:/" + std::string(107, 'x'),
                                  std::string(254, 'h') + ":5",
                                  cut_by_c})
    EXPECT_EQ(parse_task_address(text), std::nullopt) << text;
}

TEST(TaskAddress, ThatIsMalformedIsNamed) {
  EXPECT_THAT([] { task_address_of("h:65536"); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr(R"(Could not interpret "h:65536" as a host-port pair.)")));
}

}  // namespace
}  // namespace kolo::detail
