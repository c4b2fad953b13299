// Several watchdogs in one process, on a clock that the test turns.

#include <kolo/collectives/progress/watch.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <deque>
#include <memory>
#include <thread>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/stop_signal.h>

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
        if (entered_at[rank]) waiting.push_back({0, ticket, "bucket 0 (\"g\")", *entered_at[rank]});
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
  std::int64_t ticket = 0;
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
  dogs[2]->announce_exit();
  ticket = 4;
  enter(0);
  pass(1s);
  EXPECT_EQ(dogs[0]->verdict(0, 4), nullptr);
  ticket = 5;
  enter(0);
  pass(400ms);
  for (const int rank : {0, 1})
    EXPECT_THAT([&] { std::rethrow_exception(dogs[rank]->verdict(0, 5)); },
                ThrowsMessage<UnavailableError>(HasSubstr("rank 2 on h2 is gone (exited)")));
}

TEST_F(WatchdogTest, SaysNothingOfARankThatLeftWhereNobodyWaitsLong) {
  dogs[2]->announce_exit();
  pass(1s);
  const int before = notes;
  enter(0);
  pass(50ms);
  EXPECT_EQ(notes, before);
}

TEST_F(WatchdogTest, KnowsWhenAllHaveLeft) {
  for (const int rank : {1, 0}) dogs[rank]->announce_exit();
  pass(1s);
  for (auto& dog : dogs) EXPECT_FALSE(dog->have_all_left());
  dogs[2]->announce_exit();
  pass(200ms);
  for (auto& dog : dogs) EXPECT_TRUE(dog->have_all_left());
}

TEST_F(WatchdogTest, TellsOfALossRatherThanOfAnEnd) {
  pass(50ms);
  enter(0);
  dogs[1]->announce_exit();
  dogs[1]->lost(2, 41);
  boxes[2]->open = false;
  pass(500ms);
  EXPECT_THAT([&] { std::rethrow_exception(dogs[0]->verdict(0, 0)); },
              ThrowsMessage<UnavailableError>(HasSubstr("rank 2 on h2 is gone (last step 41)")));
}

TEST_F(WatchdogTest, LeavesAloneOperationsOfOtherRanks) {
  for (auto& dog : dogs) dog->set_members(0, {0, 1});
  dogs[2]->announce_exit();
  enter(0);
  EXPECT_THAT(logged_during(1500ms), HasSubstr("ready on [0], missing on [1]"));
  EXPECT_EQ(dogs[0]->verdict(0, 5), nullptr);
}

TEST_F(WatchdogTest, EndsAllOperationsOnAllRanksWhereOneIsGone) {
  pass(50ms);
  dogs[1]->lost(2, 41);
  dogs[1]->lost(2, 42);
  boxes[2]->open = false;
  pass(50ms);
  for (const int rank : {0, 1}) {
    EXPECT_TRUE(dogs[rank]->is_anyone_gone());
    EXPECT_THAT([&] { std::rethrow_exception(dogs[rank]->given_up()); },
                ThrowsMessage<UnavailableError>(HasSubstr("rank 2 on h2 is gone (last step 41)")));
  }
  pass(1s);
  EXPECT_EQ(notes, 2) << "a word to rank 0, and its answer";
}

TEST_F(WatchdogTest, SaysThatNoStepIsKnown) {
  EXPECT_EQ(text_of_loss(1, "h1", -1), "rank 1 on h1 is gone (last step unknown)");
}

TEST_F(WatchdogTest, SaysThatTheJobWasBeingEndedWhereSigtermCameBefore) {
  install_stop_signals();
  std::raise(SIGTERM);
  EXPECT_EQ(text_of_loss(1, "h1", 7), "rank 1 on h1 is gone (last step 7)") << "mpirun's own SIGTERM";
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(text_of_loss(1, "h1", 7),
            "rank 1 on h1 is gone (last step 7) (the job was being ended by SIGTERM)");
  clear_stop_signal();
  EXPECT_EQ(text_of_loss(1, "h1", 7), "rank 1 on h1 is gone (last step 7)");
}

// Rank 0, whom the others ask, has never heard of the channel.
TEST_F(WatchdogTest, NamesTheMissingRankOfAChannelThatRankZeroIsNotIn) {
  for (const int rank : {1, 2}) dogs[rank]->set_members(0, {1, 2});
  enter(2);
  EXPECT_THAT(logged_during(2s), HasSubstr("ready on [2], missing on [1]"));
}

}  // namespace
}  // namespace kolo
