#include <kolo/core/base/stop_time.h>

#include <gtest/gtest.h>

#include <cstdlib>

namespace kolo::detail {
namespace {

class TimesOfUtc : public testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("TZ", "UTC", 1); }
};
using End = TimesOfUtc;
using TimeToStop = TimesOfUtc;
using StopTimeTest = TimesOfUtc;

WallTime at(std::int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }

const BatchJob kJob = {.system = "Slurm", .job = "7"};

std::string ends_at_1000(const char* name) { return std::string(name) == "SLURM_JOB_END_TIME" ? "1000" : ""; }
std::string says_nothing(const char*) { return ""; }

// squeue's answer for job 7.
RunProgram saying(const std::string& end) {
  return [end](const std::vector<std::string>& command) {
    const bool is_asked = command == std::vector<std::string>{"squeue", "-h", "-o", "%e", "-j", "7"};
    return ProgramEnd{is_asked && !end.empty(), end + "\n", ""};
  };
}

TEST_F(End, IsAskedForSinceItMayHaveMoved) {
  EXPECT_EQ(find_end(kJob, ends_at_1000, saying("2026-11-27T09:14:02")), at(1795770842));
  EXPECT_EQ(find_end(kJob, ends_at_1000, saying("")), at(1000));
  EXPECT_EQ(find_end(kJob, says_nothing, saying("N/A")), std::nullopt);
  EXPECT_EQ(find_end({.system = "PBS", .job = "7"}, ends_at_1000, saying("2026-11-27T09:14:02")),
            std::nullopt);
}

TEST_F(TimeToStop, IsAMinuteBeforeTheEndOrATenthOfWhatIsLeft) {
  EXPECT_EQ(time_to_stop(at(0), at(3600), {}), at(3540));
  EXPECT_EQ(time_to_stop(at(0), at(60), {}), at(54));
  EXPECT_EQ(time_to_stop(at(100), at(60), {}), at(60));
}

TEST_F(TimeToStop, IsWhatTheUserAsksFor) {
  EXPECT_EQ(time_to_stop(at(0), at(60), 20), at(40));
  EXPECT_EQ(time_to_stop(at(0), at(60), 0), std::nullopt);
}

TEST_F(StopTimeTest, FollowsAnEndThatIsMoved) {
  std::string end = "1970-01-01T00:01:00";
  StopTime stop(kJob, 20, says_nothing, [&](const auto& command) { return saying(end)(command); });
  EXPECT_EQ(stop.when(), at(40));
  end = "1970-01-01T00:02:00";
  EXPECT_EQ(stop.confirm(), std::nullopt);
  EXPECT_EQ(stop.when(), at(100));
  EXPECT_EQ(stop.confirm(), at(120));
  EXPECT_EQ(stop.when(), std::nullopt);
  EXPECT_EQ(clock_text(at(120)), "00:02:00");
}

TEST_F(StopTimeTest, FollowsAnEndThatIsMovedToEarlierWithinAMinute) {
  using namespace std::chrono_literals;
  std::string end = "2100-01-01T01:00:00";
  int times = 0;
  StopTime stop(kJob, 20, says_nothing, [&](const auto& command) { return ++times, saying(end)(command); });
  const WallTime start = std::chrono::system_clock::now();
  const WallTime before = *stop.when();
  EXPECT_LT(*stop.next(), before);
  end = "2100-01-01T00:30:00";
  stop.look_again(start + 30s);
  EXPECT_EQ(times, 1) << "a controller is asked once a minute at most";
  stop.look_again(start + 61s);
  EXPECT_EQ(stop.when(), before - 30min);
  EXPECT_EQ(stop.next(), start + 121s);
  end = "2100-01-01T00:45:00";
  stop.look_again(start + 122s);
  EXPECT_EQ(stop.when(), before - 15min);
  end = "2100-01-01T00:40:00";
  EXPECT_EQ(*stop.confirm() - 20s, before - 20min) << "moved to earlier since";
  EXPECT_EQ(stop.next(), std::nullopt);
}

TEST_F(StopTimeTest, StaysWhereNobodyAnswersAndIsAskedForLessOften) {
  using namespace std::chrono_literals;
  std::string end = "2100-01-01T01:00:00";
  StopTime stop(kJob, 20, ends_at_1000, [&](const auto& command) { return saying(end)(command); });
  const auto before = stop.when();
  const WallTime later = std::chrono::system_clock::now() + 61s;
  end = "";
  stop.look_again(later);
  EXPECT_EQ(stop.when(), before) << "the variable tells of the job's first end";
  EXPECT_EQ(stop.next(), later + 10min);
}

TEST_F(StopTimeTest, IsThereOnceAJobWithoutAnEndIsGivenOne) {
  using namespace std::chrono_literals;
  std::string end = "N/A";
  StopTime stop(kJob, 20, says_nothing, [&](const auto& command) { return saying(end)(command); });
  EXPECT_EQ(stop.when(), std::nullopt);
  end = "1970-01-01T00:02:00";
  stop.look_again(*stop.next());
  EXPECT_EQ(stop.when(), at(100));
}

TEST_F(StopTimeTest, IsEarlierWhereTheLastSaveTookLong) {
  using std::chrono::milliseconds;
  StopTime stop(kJob, 20, says_nothing, saying("1970-01-01T00:02:00"));
  stop.save_took(milliseconds(4000));
  EXPECT_EQ(stop.when(), at(100)) << "18 s are less than what is asked for";
  EXPECT_EQ(stop.reason(), "");
  stop.save_took(milliseconds(30500));
  EXPECT_EQ(stop.when(), at(120 - 71));
  EXPECT_EQ(stop.reason(), " (the last save took 30.5 s)");
  EXPECT_EQ(stop.confirm(), at(120));
  stop.save_took(milliseconds(40000));
  EXPECT_EQ(stop.when(), std::nullopt) << "it has been asked";
  StopTime never(kJob, 0, says_nothing, saying("1970-01-01T00:02:00"));
  never.save_took(milliseconds(30500));
  EXPECT_EQ(never.when(), std::nullopt);
}

TEST_F(StopTimeTest, NeverComesOutsideOfABatchJob) {
  EXPECT_EQ(StopTime({}, {}, says_nothing, saying("1970-01-01T00:01:00")).when(), std::nullopt);
}

}  // namespace
}  // namespace kolo::detail
