#include <tests/support/order_checker.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>
#include <string>

namespace kolo::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Words are apart by spaces here, ranges by commas; `-` is an empty field.
Log log_of(const std::string& text) {
  std::istringstream lines(text);
  std::string tabs;
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(' '));
    std::replace(line.begin(), line.end(), ' ', '\t');
    std::replace(line.begin(), line.end(), ',', ' ');
    line.erase(std::remove(line.begin(), line.end(), '-'), line.end());
    if (!line.empty()) tabs += line + "\n";
  }
  std::istringstream made(tabs);
  return read_log(made);
}

// A copy in, a kernel, a copy out, and a host that reads what has come; the next step overwrites the input.
constexpr const char* kStep = R"(
  use in main images - 0x100+64
  record in e1
  wait compute e1
  use compute main conv 0x100+64 0x200+64
  record compute e2
  wait out e2
  use out main fetch 0x200+64 0x900+64
  record out e3
  wait main e3
  use main main print 0x900+64 -
  use in main images2 - 0x100+64
)";

TEST(OrderChecker, ReportsNothingWhereEachUseWaitsForTheOneBefore) {
  EXPECT_THAT(conflicts(log_of(kStep)), IsEmpty());
}

TEST(OrderChecker, ReportsEachWaitThatIsLeftOut) {
  const Log log = log_of(kStep);
  int left_out = 0;
  for (std::size_t i = 0; i < log.size(); ++i) {
    if (log[i].kind != "wait") continue;
    Log without = log;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(conflicts(without).empty()) << log[i].fields[0] << " waits for " << log[i].fields[1];
    ++left_out;
  }
  EXPECT_EQ(left_out, 3);
}

TEST(OrderChecker, NamesNodesStreamsAndTheMissingWait) {
  EXPECT_THAT(conflicts(log_of("use in main images - 0x100+64\n"
                               "use compute main conv 0x120+8 0x200+64")),
              ElementsAre(AllOf(HasSubstr("images (writes, in) and conv (reads, compute) use 0x120+8"),
                                HasSubstr("missing: compute waits for what in has been given with images"))));
}

TEST(OrderChecker, KnowsWhatAWaitImplies) {
  EXPECT_THAT(conflicts(log_of(R"(
    use in main a - 0x100+4
    record in e1
    wait compute e1
    use compute main b 0x100+4 0x200+4
    record compute e2
    wait out e2
    use out main c 0x100+4,0x200+4 0x300+4
  )")),
              IsEmpty());
}

TEST(OrderChecker, TakesAnEventForWhatItStoodForWhenItWasWaitedFor) {
  EXPECT_THAT(conflicts(log_of(R"(
    use in main a - 0x100+4
    record in e
    wait compute e
    use in main b - 0x200+4
    record in e
    use compute main c 0x100+4 -
    use compute main d 0x200+4 -
  )")),
              ElementsAre(HasSubstr("b (writes, in) and d (reads, compute)")));
}

TEST(OrderChecker, LetsReadersBeWithoutAnOrder) {
  EXPECT_THAT(conflicts(log_of(R"(
    use compute main a 0x100+4 -
    use out main b 0x100+4 -
  )")),
              IsEmpty());
}

TEST(OrderChecker, ReportsAWriterBesideEachReader) {
  EXPECT_THAT(conflicts(log_of(R"(
    use compute main a 0x100+4 -
    use out main b 0x100+4 -
    use in main c - 0x0f0+64
  )")),
              SizeIs(2));
}

TEST(OrderChecker, KeepsThreadsApartUntilOneHandsOnToTheOther) {
  constexpr const char* kUses = "use one one a - 0x100+4\n%use two two b 0x100+4 -";
  const auto with = [&](const std::string& between) {
    std::string text = kUses;
    return conflicts(log_of(text.replace(text.find('%'), 1, between)));
  };
  EXPECT_THAT(with(""), SizeIs(1));
  EXPECT_THAT(with("record one n\nwait two n\n"), IsEmpty());
}

TEST(OrderChecker, DoesNotCountOnWhatAThreadHappensToHaveDoneBefore) {
  constexpr const char* kLog = R"(
    use in main a - 0x100+4
    record in e
    wait main e
    begin main %
    use compute main b 0x100+4 -
  )";
  const auto with = [&](const std::string& tokens) {
    std::string text = kLog;
    return conflicts(log_of(text.replace(text.find('%'), 1, tokens)));
  };
  EXPECT_THAT(with("none"), SizeIs(1));
  EXPECT_THAT(with("none,e"), IsEmpty());
}

TEST(OrderChecker, OrdersWhatAStreamIsGivenBehindWhatItsThreadHasDone) {
  EXPECT_THAT(conflicts(log_of(R"(
    use main main write - 0x100+4
    use in main copy 0x100+4 0x200+4
  )")),
              IsEmpty());
}

TEST(OrderChecker, ReportsMemoryThatIsFreedUnderAKernel) {
  EXPECT_THAT(conflicts(log_of("use compute main a - 0x100+64\nfree main 0x100+64")),
              ElementsAre(HasSubstr("what frees it")));
  EXPECT_THAT(conflicts(log_of(R"(
    use compute main a - 0x100+64
    record compute e
    wait main e
    free main 0x100+64
    use other other b - 0x100+64
  )")),
              IsEmpty());
}

TEST(OrderChecker, RefusesALineThatIsNone) {
  EXPECT_THROW(log_of("use in"), std::runtime_error);
  EXPECT_THROW(log_of("erase a b"), std::runtime_error);
}

}  // namespace
}  // namespace kolo::testing
