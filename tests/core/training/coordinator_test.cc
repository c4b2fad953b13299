#include <kolo/core/training/coordinator.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/queues.h>
#include <kolo/core/training/monitored_session.h>

namespace kolo {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::ThrowsMessage;

void wait_for_stop(const std::stop_token& stop) {
  std::promise<void> stopped;
  const std::stop_callback on_stop(stop, [&] { stopped.set_value(); });
  stopped.get_future().wait();
}
std::exception_ptr an_error(const char* text) {
  return std::make_exception_ptr(InvalidArgumentError("{}", text));
}

TEST(Coordinator, StopsAndJoinsItsThreads) {
  Coordinator coordinator;
  bool ended = false;
  coordinator.start("waits", [&](const std::stop_token& stop) {
    wait_for_stop(stop);
    ended = true;
  });
  EXPECT_FALSE(coordinator.should_stop());
  coordinator.join(10s);
  EXPECT_TRUE(ended);
  EXPECT_TRUE(coordinator.should_stop());
  EXPECT_EQ(coordinator.take_error(), nullptr);
}

TEST(Coordinator, KeepsTheFirstError) {
  Coordinator coordinator;
  coordinator.start("fails", [](const std::stop_token&) { throw InvalidArgumentError("first"); });
  wait_for_stop(coordinator.error_token());
  coordinator.request_stop(an_error("second"));
  coordinator.join(10s);
  EXPECT_THAT([&] { std::rethrow_exception(coordinator.take_error()); },
              ThrowsMessage<InvalidArgumentError>("first"));
  EXPECT_EQ(coordinator.take_error(), nullptr);
}

TEST(Coordinator, TakesACancellationAfterAStopForNoError) {
  Coordinator coordinator;
  coordinator.start("cancelled", [](const std::stop_token& stop) {
    wait_for_stop(stop);
    throw CancelledError("cancelled");
  });
  coordinator.join(10s);
  EXPECT_EQ(coordinator.take_error(), nullptr);
  EXPECT_FALSE(coordinator.error_token().stop_requested());
}

TEST(Coordinator, NamesTheThreadsThatDoNotEnd) {
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  Coordinator coordinator;
  for (const char* name : {"a", "b"})
    coordinator.start(name, [gone](const std::stop_token&) { gone.wait(); });
  EXPECT_THAT([&] { coordinator.join(20ms); }, ThrowsMessage<FailedPreconditionError>(HasSubstr(
                                                   "Coordinator stopped with threads still running: a b")));
  go.set_value();
  coordinator.join(10s);
}

TEST(Coordinator, TellsAThreadThatComesAfterTheStop) {
  Coordinator coordinator;
  coordinator.request_stop();
  bool told = false;
  coordinator.start("late", [&](const std::stop_token& stop) { told = stop.stop_requested(); });
  coordinator.join(10s);
  EXPECT_TRUE(told);
}

// Runs a thread beside the loop.
class ThreadHook : public SessionRunHook {
 public:
  using Body = std::function<void(Session& session, std::stop_token stop)>;
  explicit ThreadHook(Body body) : body_(std::move(body)) {}
  void after_create_session(Session& session, Coordinator& coordinator) override {
    ++sessions;
    coordinator.start("beside", [this, &session](std::stop_token stop) { body_(session, std::move(stop)); });
  }
  void end(Session&) override { ++ends; }

  int sessions = 0;
  int ends = 0;

 private:
  Body body_;
};

// A loop whose step waits for an element of a queue, which a thread fills.
class ThreadsOfASession : public testing::Test {
 protected:
  MonitoredTrainingSession& begin(ThreadHook::Body body) {
    hook_ = std::make_shared<ThreadHook>(std::move(body));
    training_ = std::make_unique<MonitoredTrainingSession>(
        graph_, MonitoredTrainingSessionOptions{.hooks = {hook_}, .stop_grace_period_secs = 10});
    return *training_;
  }

  Graph graph_;
  Scope s_{graph_};
  FIFOQueue queue_{s_, {DType::f32}, {.shapes = {Shape()}}};
  Operation put_ = enqueue(s_, queue_, {constant(s_, Tensor::scalar<float>(5))});
  Output take_ = dequeue(s_, queue_)[0];
  std::shared_ptr<ThreadHook> hook_;
  std::unique_ptr<MonitoredTrainingSession> training_;
};

TEST_F(ThreadsOfASession, FeedItThroughAQueue) {
  auto& training = begin([&](Session& session, const std::stop_token& stop) {
    while (!stop.stop_requested()) session.run({put_}, {}, {.stop_token = stop});
  });
  for (int i = 0; i < 10; ++i) EXPECT_EQ(training.run(take_).value<float>(), 5);
  training.close();
  EXPECT_EQ(hook_->ends, 1);
}

TEST_F(ThreadsOfASession, EndTheRunUnderWayWithTheirError) {
  auto& training =
      begin([](Session&, const std::stop_token&) { throw InvalidArgumentError("of the thread"); });
  EXPECT_THAT([&] { training.run(take_); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("of the thread")));
  training.close();  // told once
}

TEST_F(ThreadsOfASession, TellTheirErrorWhereNothingRuns) {
  std::promise<void> failing;
  auto& training = begin([&](Session&, const std::stop_token&) {
    failing.set_value();
    throw InvalidArgumentError("of the thread");
  });
  failing.get_future().wait();
  EXPECT_THAT(
      [&] {
        while (!training.should_stop()) std::this_thread::yield();
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("of the thread")));
}

TEST_F(ThreadsOfASession, TellTheirErrorAtTheEnd) {
  auto& training = begin([](Session&, const std::stop_token& stop) {
    wait_for_stop(stop);
    throw InvalidArgumentError("at the end");
  });
  testing::internal::CaptureStderr();
  training.close();  // it came after the stop: a line in the log
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("at the end"));
}

TEST_F(ThreadsOfASession, EndTheTrainingByTheEndOfTheirData) {
  auto& training = begin([](Session&, const std::stop_token&) { throw OutOfRangeError("no more"); });
  EXPECT_FALSE(training.run(take_));
  EXPECT_TRUE(training.should_stop());
  training.close();
  EXPECT_EQ(hook_->ends, 1);
}

TEST_F(ThreadsOfASession, AreJoinedBeforeARecovery) {
  struct Running {
    explicit Running(std::atomic<int>& of) : count(of) { ++count; }
    ~Running() { --count; }
    std::atomic<int>& count;
  };
  std::atomic<int> running = 0, at_most = 0;
  std::atomic<bool> has_failed = false;
  auto& training = begin([&](Session& session, const std::stop_token& stop) {
    const Running this_one(running);
    at_most = std::max<int>(at_most, running);
    if (!has_failed.exchange(true)) throw UnavailableError("gone for a while");
    session.run({put_}, {}, {.stop_token = stop});
    wait_for_stop(stop);
  });
  EXPECT_EQ(training.run(take_).value<float>(), 5);  // in the second session
  EXPECT_EQ(hook_->sessions, 2);
  training.close();
  EXPECT_EQ(at_most, 1);
  EXPECT_EQ(running, 0);
}

TEST_F(ThreadsOfASession, MakeTheSessionAnewBetweenRuns) {
  std::atomic<bool> has_failed = false;
  auto& training = begin([&](Session&, const std::stop_token& stop) {
    if (!has_failed.exchange(true)) throw UnavailableError("gone for a while");
    wait_for_stop(stop);
  });
  while (hook_->sessions < 2) EXPECT_FALSE(training.should_stop());
  EXPECT_FALSE(training.should_stop());
  training.close();
}

TEST_F(ThreadsOfASession, MayWaitInARunWithoutAToken) {
  hook_ = std::make_shared<ThreadHook>([&](Session& session, const std::stop_token&) { session.run(take_); });
  MonitoredTrainingSession training(graph_, {.hooks = {hook_}, .stop_grace_period_secs = 0.05});
  testing::internal::CaptureStderr();
  training.close();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("threads still running"));
}

TEST_F(ThreadsOfASession, MayAskForAStop) {
  Coordinator* coordinator = nullptr;
  struct Asking final : SessionRunHook {
    explicit Asking(Coordinator*& to) : to_(to) {}
    void after_create_session(Session&, Coordinator& coordinator) override { to_ = &coordinator; }
    Coordinator*& to_;
  };
  MonitoredTrainingSession training(graph_, {.hooks = {std::make_shared<Asking>(coordinator)}});
  EXPECT_FALSE(training.should_stop());
  coordinator->request_stop();
  EXPECT_TRUE(training.should_stop());
}

}  // namespace
}  // namespace kolo
