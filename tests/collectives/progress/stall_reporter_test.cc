#include <kolo/collectives/progress/stall_reporter.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Several reporters in one process, on a clock that the test turns.
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
          rank, std::vector<int>{4, 5, 6}, hosts, StallLimits{.warning = 1s, .abort = 3s},
          [this, rank](int to, const std::string& text) {
            ++notes;
            boxes[to].push_back({rank, text});
          },
          [this, rank](const std::string&) {
            if (left == rank) return Standing::left;
            return since[rank] ? Standing::ready : Standing::missing;
          }));
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
          waiting.push_back({"g", "allreduce g", reporters[rank]->all(), *since[rank], is_patient});
        for (const auto& ruling : reporters[rank]->poll(now, waiting))
          ends[rank] = ruling.left < 0 ? ruling.ended_because : fmt::format("{} has left", ruling.left);
      }
    return testing::internal::GetCapturedStderr();
  }

  const std::vector<std::string> hosts = {"h0", "h1", "h2", "h3", "h4", "h5", "h6"};
  std::vector<std::unique_ptr<StallReporter>> reporters;
  std::deque<Note> boxes[kRanks];
  std::optional<StallReporter::Clock::time_point> since[kRanks];
  std::string ends[kRanks];
  StallReporter::Clock::time_point now{1h};
  int notes = 0;
  int deaf = -1, left = -1;
  bool is_patient = false;
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

TEST_F(StallReporterTest, NamesARankThatHasLeftLongBeforeTheLimits) {
  for (auto& reporter : reporters) reporter->someone_has_left();
  since[1] = now;
  left = 2;
  EXPECT_EQ(logged_during(500ms), "");
  EXPECT_EQ(ends[0], "2 has left");
}

TEST_F(StallReporterTest, LetsAPatientOneWaitForRanksThatAreThere) {
  for (auto& reporter : reporters) reporter->someone_has_left();
  since[1] = now;
  is_patient = true;
  EXPECT_EQ(logged_during(10s), "");
  for (const auto& end : ends) EXPECT_EQ(end, "");
  left = 2;
  logged_during(1s);
  EXPECT_EQ(ends[0], "2 has left");
}

// Its name comes again once it has ended.
TEST_F(StallReporterTest, ReportsAnotherCallOfTheSameName) {
  since[1] = now;
  logged_during(1500ms);
  since[1].reset();
  for (auto& reporter : reporters) reporter->decided("g");
  logged_during(1s);
  since[1] = now;
  EXPECT_THAT(logged_during(1500ms), HasSubstr("ready on [5], missing on [4,6]"));
}

}  // namespace
}  // namespace kolo::detail
