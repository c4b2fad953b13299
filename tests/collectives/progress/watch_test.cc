// Several watchdogs in one process, on a clock that the test turns.

#include <kolo/collectives/progress/watch.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

namespace kolo {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

// Several watchdogs in one process, on a clock that the test turns.
class WatchdogTest : public testing::Test {
 protected:
  static constexpr int kRanks = 3;

  struct Box final : Mailbox {
    void post(int to, const std::string& text) override {
      ++test->notes;
      if (test->boxes[to]->open) test->boxes[to]->mails.push_back({rank, text});
    }
    std::optional<Mail> take() override {
      if (mails.empty()) return std::nullopt;
      Mail mail = mails.front();
      mails.pop_front();
      return mail;
    }
    WatchdogTest* test = nullptr;
    int rank = 0;
    bool open = true;
    std::deque<Mail> mails;
  };

  void SetUp() override {
    for (int rank = 0; rank < kRanks; ++rank) {
      boxes.push_back(std::make_unique<Box>());
      boxes.back()->test = this;
      boxes.back()->rank = rank;
    }
    for (int rank = 0; rank < kRanks; ++rank)
      dogs.push_back(std::make_unique<Watchdog>(*boxes[rank], rank,
                                                std::vector<std::string>{"h0", "h1", "h2"},
                                                Watchdog::Limits{.warning = 1s, .abort = 3s}));
    finished.assign(kRanks, {{}});
    entered_at.assign(kRanks, std::nullopt);
  }

  void enter(int rank) { entered_at[rank] = now; }

  // Every 50 ms each rank that is not deaf looks after its operations.
  void pass(std::chrono::milliseconds time) {
    for (const auto end = now + time; now < end; now += 50ms)
      for (int rank = 0; rank < kRanks; ++rank) {
        if (!boxes[rank]->open) continue;
        std::vector<Waiting> waiting;
        if (entered_at[rank]) waiting.push_back({0, 0, "bucket 0 (\"g\")", *entered_at[rank]});
        dogs[rank]->poll(now, waiting, finished[rank]);
      }
  }

  std::string logged_during(std::chrono::milliseconds time) {
    testing::internal::CaptureStderr();
    pass(time);
    return testing::internal::GetCapturedStderr();
  }

  std::string verdict_of(int rank) {
    try {
      if (const auto error = dogs[rank]->verdict(0, 0)) std::rethrow_exception(error);
    } catch (const DeadlineExceededError& error) {
      return error.what();
    }
    return "";
  }

 public:
  std::vector<std::unique_ptr<Box>> boxes;
  std::vector<std::unique_ptr<Watchdog>> dogs;
  std::vector<std::vector<Reached>> finished;
  std::vector<std::optional<Watchdog::Clock::time_point>> entered_at;
  Watchdog::Clock::time_point now{1h};
  int notes = 0;
};

TEST_F(WatchdogTest, SendsNothingBeforeTheLimit) {
  enter(0);
  enter(1);
  pass(900ms);
  EXPECT_EQ(notes, 0);
}

TEST_F(WatchdogTest, WarnsOnceOfTheMissingRankByName) {
  enter(0);
  pass(500ms);
  enter(1);
  const auto log = logged_during(1500ms);
  const std::string line = "\"g\"): waited 1.1 s; ready on [0,1], missing on [2]";
  EXPECT_THAT(log, HasSubstr(line));
  EXPECT_THAT(log.substr(log.find(line) + line.size()), Not(HasSubstr("stalled")));
}

TEST_F(WatchdogTest, EndsTheWaitOnAllRanksAtTheSecondLimit) {
  enter(1);
  enter(2);
  logged_during(2900ms);
  EXPECT_EQ(verdict_of(0) + verdict_of(1) + verdict_of(2), "");
  logged_during(600ms);
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_THAT(verdict_of(rank), AllOf(HasSubstr("\"g\""), HasSubstr("ready on [1,2], missing on [0]")));
}

TEST_F(WatchdogTest, SaysNothingOfAnOperationThatAllHaveEntered) {
  for (int rank = 0; rank < kRanks; ++rank) enter(rank);
  EXPECT_EQ(logged_during(5s), "");
  EXPECT_EQ(verdict_of(0), "");
}

TEST_F(WatchdogTest, ForgetsAStallWhenTheMissingRankComes) {
  enter(0);
  enter(1);
  logged_during(2s);
  enter(2);
  logged_during(3s);
  EXPECT_EQ(verdict_of(0) + verdict_of(1), "");
}

TEST_F(WatchdogTest, CountsARankThatDoesNotAnswerAsMissing) {
  boxes[2]->open = false;
  enter(0);
  enter(1);
  EXPECT_THAT(logged_during(2500ms), HasSubstr("missing on [2]"));
}

TEST_F(WatchdogTest, GivesUpAloneWhenRankZeroDoesNotAnswer) {
  boxes[0]->open = false;
  enter(1);
  logged_during(7s);
  EXPECT_THAT(verdict_of(1), HasSubstr("rank 0 on h0 does not answer"));
}

TEST_F(WatchdogTest, EndsWhatARankThatLeftHadNotFinished) {
  finished[2] = {{.channel = 0, .ticket = 4}};
  dogs[2]->announce_exit(finished[2]);
  pass(100ms);
  EXPECT_EQ(dogs[0]->verdict(0, 4), nullptr);
  EXPECT_THAT([&] { std::rethrow_exception(dogs[0]->verdict(0, 5)); },
              ThrowsMessage<UnavailableError>(HasSubstr("rank 2 on h2 is gone (exited)")));
}

TEST_F(WatchdogTest, LeavesAloneOperationsOfOtherRanks) {
  for (auto& dog : dogs) dog->set_members(0, {0, 1});
  dogs[2]->announce_exit(finished[2]);
  enter(0);
  EXPECT_THAT(logged_during(1500ms), HasSubstr("ready on [0], missing on [1]"));
  EXPECT_EQ(dogs[0]->verdict(0, 5), nullptr);
}

TEST_F(WatchdogTest, EndsAllOperationsOnAllRanksWhereOneIsGone) {
  dogs[1]->lost(2, 41);
  dogs[1]->lost(2, 42);
  boxes[2]->open = false;
  pass(50ms);
  for (const int rank : {0, 1}) {
    EXPECT_TRUE(dogs[rank]->is_anyone_gone());
    EXPECT_THAT([&] { std::rethrow_exception(dogs[rank]->given_up()); },
                ThrowsMessage<UnavailableError>(HasSubstr("rank 2 on h2 is gone (last step 41)")));
  }
  EXPECT_EQ(notes, 1);
}

TEST_F(WatchdogTest, SaysThatNoStepIsKnown) {
  EXPECT_EQ(text_of_loss(1, "h1", -1), "rank 1 on h1 is gone (last step unknown)");
}

// Rank 0, whom the others ask, has never heard of the channel.
TEST_F(WatchdogTest, NamesTheMissingRankOfAChannelThatRankZeroIsNotIn) {
  for (const int rank : {1, 2}) dogs[rank]->set_members(0, {1, 2});
  enter(2);
  EXPECT_THAT(logged_during(2s), HasSubstr("ready on [2], missing on [1]"));
}

}  // namespace
}  // namespace kolo

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The same for reporters.
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
