#include <kolo/collectives/progress/comm_thread.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <kolo/collectives/progress/watch.h>
#include <kolo/collectives/transport/mailbox.h>
#include <kolo/core/base/error.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// Finishes when it is told to.
class Gate final : public Collective {
 public:
  void start() override { started = true; }
  Progress progress() override {
    if (broken) throw UnavailableError("the network is gone");
    return open ? Progress::finished : Progress::none;
  }
  std::atomic<bool> started{false}, open{false}, broken{false};
};

/// Needs no communication thread, and remembers who worked on it.
class AnyThreads final : public Collective {
 public:
  void start() override {
    polls = 0;
    started_by = std::this_thread::get_id();
  }
  Progress progress() override {
    advanced_by = std::this_thread::get_id();
    return open || ++polls >= polls_to_finish ? Progress::finished : Progress::none;
  }
  bool needs_comm_thread() const override { return false; }
  std::atomic<bool> open{false};
  int polls = 0, polls_to_finish = 10;
  std::atomic<std::thread::id> started_by, advanced_by;
};

class CommThreadTest : public testing::Test {
 protected:
  CommThreadTest() { thread_.recorder().set_identity({.size = 2, .folder = folder_.path()}); }
  std::future<void> submit(int channel, std::shared_ptr<Gate> gate) {
    auto promise = std::make_shared<std::promise<void>>();
    auto over = promise->get_future();
    thread_.submit({channel, ticket_++, std::move(gate), "the test", [promise](std::exception_ptr error) {
                      if (error) promise->set_exception(error);
                      else promise->set_value();
                    }});
    return over;
  }
  void let_it_turn() {
    thread_.call([] {});  // a submission is taken in one turn, started at the latest in the next
    thread_.call([] {});
  }

  const TemporaryDirectory folder_;  // of flight records
  CommThread thread_;
  int a_ = thread_.open_channel();
  int b_ = thread_.open_channel();
  std::int64_t ticket_ = 0;
};

TEST_F(CommThreadTest, RunsOneChannelInOrderOfSubmission) {
  const auto first = std::make_shared<Gate>(), second = std::make_shared<Gate>();
  second->open = true;
  auto first_over = submit(a_, first), second_over = submit(a_, second);
  let_it_turn();
  EXPECT_TRUE(first->started);
  EXPECT_FALSE(second->started);
  first->open = true;
  first_over.get();
  second_over.get();
}

TEST_F(CommThreadTest, GoesOnWithOneChannelWhileAnotherWaits) {
  const auto waiting = std::make_shared<Gate>(), ready = std::make_shared<Gate>();
  ready->open = true;
  auto waiting_over = submit(a_, waiting);
  auto ready_over = submit(b_, ready);
  EXPECT_EQ(ready_over.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(waiting_over.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  waiting->open = true;
  waiting_over.get();
}

TEST_F(CommThreadTest, AnswersEverythingWithTheFirstError) {
  const auto broken = std::make_shared<Gate>(), waiting = std::make_shared<Gate>(),
             later = std::make_shared<Gate>();
  auto waiting_over = submit(b_, waiting);
  broken->broken = true;
  EXPECT_THAT([&] { submit(a_, broken).get(); }, ThrowsMessage<UnavailableError>("the network is gone"));
  EXPECT_THROW(waiting_over.get(), UnavailableError);
  EXPECT_THROW(submit(b_, later).get(), UnavailableError);
  EXPECT_FALSE(thread_.may_run_here(a_));
  EXPECT_FALSE(later->started);
}

TEST_F(CommThreadTest, LeavesOtherGroupsAloneWhenOneFails) {
  const int own = thread_.open_channel(7), same = thread_.open_channel(7);
  const auto broken = std::make_shared<Gate>(), waiting = std::make_shared<Gate>(),
             other = std::make_shared<Gate>();
  auto waiting_over = submit(same, waiting), other_over = submit(a_, other);
  broken->broken = true;
  EXPECT_THROW(submit(own, broken).get(), UnavailableError);
  EXPECT_THROW(waiting_over.get(), UnavailableError);
  EXPECT_THROW(submit(thread_.open_channel(7), std::make_shared<Gate>()).get(), UnavailableError);
  other->open = true;
  other_over.get();
  thread_.call([&] {
    EXPECT_TRUE(thread_.error(7));
    EXPECT_FALSE(thread_.error());
  });
}

/// In which nothing arrives.
class NoMail final : public Mailbox {
 public:
  void post(int, const std::string&) override {}
  std::optional<Mail> take() override { return std::nullopt; }
};

// The program goes on without the group.
TEST_F(CommThreadTest, RecordsTheFirstFailureOfAGroupAndThatOfTheJob) {
  NoMail mail;
  const auto recorded = [&] { return bytes_of_file(folder_ / "kolo-flight.0.json"); };
  const auto fail = [&](int group, const std::string& text) {
    thread_.call([&] { thread_.fail(group, std::make_exception_ptr(UnavailableError("{}", text))); });
  };
  thread_.call([&] {
    thread_.set_watchdog(
        std::make_unique<Watchdog>(mail, 0, std::vector<std::string>{"a", "b"}, Watchdog::Limits{}));
  });
  auto pending = submit(a_, std::make_shared<Gate>());
  fail(7, "seven");
  fail(7, "once more");
  EXPECT_THAT(recorded(), HasSubstr("seven"));
  thread_.call([&] { thread_.watchdog()->lost(1, 5); });
  EXPECT_THROW(pending.get(), UnavailableError);
  EXPECT_THAT(recorded(), HasSubstr("rank 1 on b is gone (last step 5)"));
  fail(8, "what follows from it");
  EXPECT_THAT(recorded(), HasSubstr("is gone"));
  thread_.call([&] { thread_.set_watchdog(nullptr); });
}

TEST_F(CommThreadTest, EndsPendingOperationsWhenItIsClosed) {
  auto over = submit(a_, std::make_shared<Gate>());
  thread_.close();
  const char text[] = "kolo was shut down while the test was pending";
  EXPECT_THAT([&] { over.get(); }, ThrowsMessage<AbortedError>(text));
  EXPECT_THAT([&] { submit(a_, std::make_shared<Gate>()).get(); }, ThrowsMessage<AbortedError>(text));
}

TEST_F(CommThreadTest, RethrowsWhatACallThrows) {
  EXPECT_THROW(thread_.call([] { throw NotFoundError("x"); }), NotFoundError);
}

TEST_F(CommThreadTest, AdvancesItsResidentAtOnceWhenItIsWoken) {
  struct Counter final : Resident {
    State advance(std::chrono::steady_clock::time_point) override {
      ++turns;
      turns.notify_all();
      return State::idle;
    }
    std::atomic<int> turns{0};
  } counter;
  thread_.call([&] { thread_.set_resident(&counter); });
  for (int wakes = 0; wakes < 3; ++wakes) {
    const int before = counter.turns;
    thread_.wake();
    counter.turns.wait(before);
  }
  EXPECT_GE(counter.turns, 3);
  thread_.call([&] { thread_.set_resident(nullptr); });
}

TEST_F(CommThreadTest, KnowsItself) {
  bool inside = false;
  thread_.call([&] { inside = thread_.is_current(); });
  EXPECT_TRUE(inside);
  EXPECT_FALSE(thread_.is_current());
}

TEST_F(CommThreadTest, CallerRunsWhatNeedsNoCommunicationThread) {
  const auto operation = std::make_shared<AnyThreads>();
  for (int again = 0; again < 3; ++again) thread_.run(a_, operation, "the test");
  EXPECT_EQ(operation->started_by, std::this_thread::get_id());
  EXPECT_EQ(operation->advanced_by, std::this_thread::get_id());
  EXPECT_EQ(thread_.recorder().ended(), 3);
  thread_.call([&] { EXPECT_EQ(thread_.finished()[a_].ticket, 2); });  // as the watchdog sees it
}

// Where it stays under the eyes of the watchdog.
TEST_F(CommThreadTest, CallerHandsOverAnOperationThatWaitsLong) {
  const auto operation = std::make_shared<AnyThreads>();
  operation->polls_to_finish = std::numeric_limits<int>::max();
  auto over = std::async(std::launch::async, [&] { thread_.run(a_, operation, "the test"); });
  const auto is_handed_over = [&] {
    const auto by = operation->advanced_by.load();
    return by != std::thread::id() && by != operation->started_by.load();
  };
  while (!is_handed_over()) std::this_thread::yield();
  operation->open = true;
  over.get();
  thread_.call([&] { EXPECT_EQ(thread_.finished()[a_].ticket, 0); });
}

// On a busy machine each offer of the core takes milliseconds, as each look does here.
TEST_F(CommThreadTest, CallerHandsOverAfterMillisecondsHoweverFewLooksItHad) {
  struct Slow final : Collective {
    void start() override {}
    Progress progress() override {
      if (std::this_thread::get_id() != caller) return Progress::finished;
      ++looks;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return Progress::none;
    }
    bool needs_comm_thread() const override { return false; }
    const std::thread::id caller = std::this_thread::get_id();
    int looks = 0;
  };
  const auto operation = std::make_shared<Slow>();
  thread_.set_crowded(true);
  thread_.run(a_, operation, "the test");
  EXPECT_LE(operation->looks, 50 + 20 + 2);  // those at once, and 20 ms
}

TEST_F(CommThreadTest, HandedOverOperationEndsWhenTheThreadIsClosed) {
  const auto operation = std::make_shared<AnyThreads>();
  operation->polls_to_finish = std::numeric_limits<int>::max();
  auto over = std::async(std::launch::async, [&] { thread_.run(a_, operation, "the test"); });
  while (operation->advanced_by.load() == std::thread::id()) std::this_thread::yield();
  thread_.close();
  EXPECT_THROW(over.get(), AbortedError);
  EXPECT_THROW(thread_.run(a_, operation, "the test"), AbortedError);
}

// No message of a group that is broken may be waited for.
TEST_F(CommThreadTest, CallerMayStartWhereNothingOfTheChannelIsUnderWay) {
  EXPECT_TRUE(thread_.may_run_here(a_));
  const auto gate = std::make_shared<Gate>();
  auto over = submit(a_, gate);
  EXPECT_FALSE(thread_.may_run_here(a_));
  EXPECT_TRUE(thread_.may_run_here(b_));
  gate->open = true;
  over.get();
  EXPECT_TRUE(thread_.may_run_here(a_));
}

TEST_F(CommThreadTest, KnowsWhatACallerHasEnded) {
  Submission submission{a_, ticket_++, std::make_shared<AnyThreads>(), "the caller's own", {}};
  submission.started = std::chrono::steady_clock::now();
  thread_.ended_here(submission);
  let_it_turn();
  std::int64_t reached = -1;
  thread_.call([&] { reached = thread_.finished()[static_cast<std::size_t>(a_)].ticket; });
  EXPECT_EQ(reached, submission.ticket);
  EXPECT_THAT(thread_.recorder().json("test"), HasSubstr("the caller's own"));
}

TEST_F(CommThreadTest, CallerStartsNothingAfterAnError) {
  const auto broken = std::make_shared<Gate>();
  broken->broken = true;
  EXPECT_THROW(submit(b_, broken).get(), UnavailableError);
  const auto operation = std::make_shared<AnyThreads>();
  EXPECT_THROW(thread_.run(a_, operation, "the test"), UnavailableError);
  EXPECT_EQ(operation->started_by, std::thread::id());
}

}  // namespace
}  // namespace kolo
