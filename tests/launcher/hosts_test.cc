#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include <kolo/core/base/error.h>
#include <kolo/launcher/hosts.h>

namespace kolo::launcher {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string write_file(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

TEST(Hosts, TakeOneSlotWhereNoNumberIsGiven) {
  EXPECT_THAT(parse_hosts("a:2,b"), ElementsAre(Host{"a", 2}, Host{"b", 1}));
}

TEST(Hosts, NamedTwiceHaveTheSlotsOfBoth) {
  EXPECT_THAT(parse_hosts("a:2,b,a"), ElementsAre(Host{"a", 3}, Host{"b", 1}));
}

TEST(Hosts, RefuseSlotsThatAreNoNumberAndSayWhichWord) {
  for (const char* slots : {"x", "", "0", "-1", "2x", "99999999999"})
    EXPECT_THAT([&] { parse_hosts(std::string("a:") + slots); },
                ThrowsMessage<InvalidArgumentError>(
                    AllOf(HasSubstr("--host"), HasSubstr(std::string("\"") + slots + "\""))));
}

TEST(Hosts, RefuseEmptyNamesAndNamesThatSshWouldTakeForOptions) {
  for (const char* list : {"", "a,", ",a", ":2", "-oProxyCommand=x", "a b", "$(x)"})
    EXPECT_THROW(parse_hosts(list), InvalidArgumentError) << list;
}

TEST(Hostfile, ReadsOpenMpisLinesCommentsAndShortForm) {
  const std::string path =
      write_file("hosts", "# the cluster\nnode1 slots=2\n\n  node2:4  # big one\nnode3\n");
  EXPECT_THAT(read_hostfile(path), ElementsAre(Host{"node1", 2}, Host{"node2", 4}, Host{"node3", 1}));
}

TEST(Discovery, TakesSlotsFromTheLineElseFromTheOptionElseFromTheList) {
  const std::string text = "a:3\nb slots=4\n\nc\nd\n";
  EXPECT_THAT(parse_discovered(text, {{"c", 2}}, std::nullopt),
              ElementsAre(Host{"a", 3}, Host{"b", 4}, Host{"c", 2}, Host{"d", 1}));
  EXPECT_THAT(parse_discovered(text, {{"c", 2}}, 8),
              ElementsAre(Host{"a", 3}, Host{"b", 4}, Host{"c", 8}, Host{"d", 8}));
}

TEST(Discovery, RefusesNoHostAndWhatIsNone) {
  for (const char* text : {"", "# none\n\n", "a\n-oProxyCommand=x\n", "a:x\n"})
    EXPECT_THROW(parse_discovered(text, {}, std::nullopt), InvalidArgumentError) << text;
}

TEST(Hostfile, TakesWhatOpenMpiTakes) {
  const std::string path = write_file("odd_hosts",
                                      "\xef\xbb\xbfnode1 slots = 2\r\nnode2 slots=4 max-slots=3\nann@node3 "
                                      "slots=2\nfe80::1 slots =2\nnode4 max_slots= 8\n");
  EXPECT_THAT(read_hostfile(path), ElementsAre(Host{"node1", 2}, Host{"node2", 3}, Host{"node3", 2, true},
                                               Host{"fe80::1", 2, true}, Host{"node4", 1}));
}

TEST(Hosts, SayThatMpirunTakesUsersAndIpv6FromAHostfile) {
  for (const char* list : {"a,ann@b:2", "fe80::1"})
    EXPECT_THAT([&] { parse_hosts(list); }, ThrowsMessage<InvalidArgumentError>(
                                                AllOf(HasSubstr("--host"), HasSubstr("--hostfile FILE"))));
}

TEST(Hostfile, NamesFileAndLineOfWhatItCannotRead) {
  const std::string path = write_file("bad_hosts", "node1 slots=2\nnode2 slot=3\n");
  EXPECT_THAT([&] { read_hostfile(path); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("bad_hosts:2"), HasSubstr("slot=3"))));
}

TEST(Hostfile, MustExistBeAFileAndNameAHost) {
  EXPECT_THAT([] { read_hostfile("/no/such/file"); },
              ThrowsMessage<NotFoundError>(HasSubstr("/no/such/file")));
  EXPECT_THROW(read_hostfile(testing::TempDir()), NotFoundError);
  EXPECT_THROW(read_hostfile(write_file("no_hosts", "# nobody\n")), InvalidArgumentError);
}

TEST(Hosts, FillTheirSlotsInOrder) {
  const std::vector<Host> hosts = {{"a", 2}, {"b", 3}};
  EXPECT_THAT(ranks_per_host(hosts, 1), ElementsAre(1, 0));
  EXPECT_THAT(ranks_per_host(hosts, 4), ElementsAre(2, 2));
  EXPECT_THAT(ranks_per_host(hosts, 8), ElementsAre(4, 4));
}

TEST(Hosts, AreTheSameWithAndWithoutDomain) {
  EXPECT_TRUE(is_same_host("node1", "node1.cluster"));
  EXPECT_TRUE(is_same_host("node1.cluster", "node1"));
  EXPECT_FALSE(is_same_host("node1.cluster", "node1.other"));
  EXPECT_FALSE(is_same_host("node1", "node10.cluster"));
}

TEST(Hosts, AreThisMachineByNameWithAndWithoutDomain) {
  for (const char* name : {"localhost", "localhost.localdomain", "ip6-localhost", "127.0.0.1", "127.0.1.1",
                           "::1", "node1", "node1.cluster"})
    EXPECT_TRUE(is_this_machine(name, "node1.cluster")) << name;
  EXPECT_FALSE(is_this_machine("node10", "node1.cluster"));
  EXPECT_FALSE(is_this_machine("node1.other", "node1.cluster"));
}

TEST(Hosts, HaveTheNamesThatEtcHostsGivesToTheirAddresses) {
  std::istringstream lines(
      "127.0.0.1 localhost\n# 10.0.0.7 no\n127.0.1.1\tNode1.cluster node1\n10.0.0.5 node1-ib # "
      "fast\n10.0.0.6 node2\n\n"
      "fe80::1 node1-v6\n");
  EXPECT_THAT(names_of_addresses(lines, {"10.0.0.5", "fe80::1"}),
              testing::UnorderedElementsAre("localhost", "node1.cluster", "node1", "node1-ib", "node1-v6"));
}

}  // namespace
}  // namespace kolo::launcher
