// Several reporters in one process, on a clock that the test turns.
#include <kolo/collectives/engine/stall_reporter.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class StallReporterTest : public testing::Test {
 protected:
  static constexpr int kRanks = 3;
  struct Note {
    int from;
    std::string text;
  };

  void SetUp() override {
    for (int rank = 0; rank < kRanks; ++rank)
      reporters.push_back(std::make_unique<StallReporter>(
          rank, std::vector<int>{4, 5, 6}, "h4", Watchdog::Limits{.warning = 1s, .abort = 3s},
          [this, rank](int to, const std::string& text) {
            ++notes;
            boxes[to].push_back({rank, text});
          },
          [this, rank](const std::string&) { return since[rank].has_value(); }));
  }

  // Every 50 ms each rank looks.
  std::string logged_during(std::chrono::milliseconds time) {
    testing::internal::CaptureStderr();
    for (const auto end = now + time; now < end; now += 50ms)
      for (int rank = 0; rank < kRanks; ++rank) {
        if (rank == deaf) continue;
        for (; !boxes[rank].empty(); boxes[rank].pop_front())
          reporters[rank]->receive(now, boxes[rank].front().from, boxes[rank].front().text);
        std::vector<StallReporter::Waiting> waiting;
        if (since[rank] && reporters[rank]->is_late(now, *since[rank]))
          waiting.push_back({"g", "allreduce g", *since[rank]});
        if (const auto text = reporters[rank]->poll(now, waiting)) ends[rank] = *text;
      }
    return testing::internal::GetCapturedStderr();
  }

  std::vector<std::unique_ptr<StallReporter>> reporters;
  std::deque<Note> boxes[kRanks];
  std::optional<StallReporter::Clock::time_point> since[kRanks];
  std::string ends[kRanks];
  StallReporter::Clock::time_point now{1h};
  int notes = 0;
  int deaf = -1;
};

TEST_F(StallReporterTest, SendsNothingBeforeTheLimit) {
  since[1] = now;
  logged_during(900ms);
  EXPECT_EQ(notes, 0);
}

TEST_F(StallReporterTest, WarnsOnceWithTheRanksOfTheJob) {
  since[0] = since[2] = now;
  const auto log = logged_during(2500ms);
  const std::string line = "allreduce g: waited 1.1 s; ready on [4,6], missing on [5]";
  EXPECT_THAT(log, HasSubstr(line));
  EXPECT_THAT(log.substr(log.find(line) + 1), Not(HasSubstr("stalled")));
}

TEST_F(StallReporterTest, HearsOfAStallThatTheRootIsNotPartOf) {
  since[2] = now;
  EXPECT_THAT(logged_during(1500ms), HasSubstr("ready on [6], missing on [4,5]"));
}

TEST_F(StallReporterTest, EndsAtTheSecondLimitOnTheRoot) {
  since[1] = now;
  logged_during(2900ms);
  EXPECT_EQ(ends[0], "");
  logged_during(600ms);
  EXPECT_THAT(ends[0], AllOf(HasSubstr("allreduce g"), HasSubstr("missing on [4,6]"),
                             HasSubstr("KOLO_STALL_ABORT_S is 3 s")));
}

TEST_F(StallReporterTest, CountsARankThatDoesNotAnswerAsMissing) {
  since[0] = since[1] = since[2] = now;
  deaf = 2;
  EXPECT_THAT(logged_during(2500ms), HasSubstr("missing on [6]"));
}

TEST_F(StallReporterTest, ForgetsAStallThatIsDecided) {
  since[1] = now;
  logged_during(1500ms);
  since[1].reset();
  reporters[0]->decided("g");
  EXPECT_EQ(logged_during(5s), "");
  EXPECT_EQ(ends[0], "");
}

TEST_F(StallReporterTest, GivesUpAloneWhenTheRootDoesNotAnswer) {
  since[1] = now;
  deaf = 0;
  logged_during(7s);
  EXPECT_THAT(ends[1], HasSubstr("rank 4 on h4 does not answer"));
}

}  // namespace
}  // namespace kolo::detail
