#include <kolo/collectives/comm_thread.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>

#include <kolo/core/base/error.h>

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

class CommThreadTest : public testing::Test {
 protected:
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
  EXPECT_FALSE(later->started);
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

}  // namespace
}  // namespace kolo
