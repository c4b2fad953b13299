// What a task keeps of a session's steps.
#include <gmock/gmock.h>

#include <future>
#include <thread>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/worker/worker_session.h>

namespace kolo::detail {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class EndOnly final : public TensorSink {
 public:
  void put(std::size_t, const Tensor&, bool, std::function<void()> released) override { released(); }
  void end(std::exception_ptr error) override { ended.set_value(std::move(error)); }
  std::promise<std::exception_ptr> ended;
};

class WorkerSessions : public ::testing::Test {
 protected:
  static constexpr std::chrono::milliseconds kRemembered{5};

  static void pass() { std::this_thread::sleep_for(2 * kRemembered); }
  // How a request for a value of the step ends.
  std::future<std::exception_ptr> ask(std::int64_t step) {
    const auto sink = std::make_shared<EndOnly>();
    session_.exchange(step)->ask({"key"}, sink);
    return sink->ended.get_future();
  }
  void begin(std::int64_t step) { session_.begin(step, nullptr, nullptr, cancellation_); }

  const std::string task_ = "/job:ps/replica:0/task:0";
  DeviceSet devices_ = make_devices({.device_count = {{"CPU", 1}}});
  TaskVariables variables_{task_};
  Containers containers_;
  StepCancellation cancellation_;
  WorkerSession session_{{.session = "a", .master = "/job:worker/replica:0/task:0", .config = {}},
                         {.task = task_,
                          .devices = devices_,
                          .variables = variables_,
                          .containers = containers_,
                          .remembered = kRemembered}};
};

TEST_F(WorkerSessions, EndRequestsOfAStepThatIsOver) {
  auto ended = ask(5);
  session_.forget(5);
  const std::exception_ptr error = ended.get();
  EXPECT_TRUE(is_consequence(error));
  EXPECT_THAT([&] { std::rethrow_exception(error); }, ThrowsMessage<Error>(HasSubstr("Step 5 is over")));
}

TEST_F(WorkerSessions, TellLateRequestsThatTheStepIsOver) {
  begin(1);
  session_.end(1);
  EXPECT_THAT([&] { session_.exchange(1); }, ThrowsMessage<Error>(HasSubstr("Step 1 is over")));
}

// The master tells with its next run, perhaps much later, that the step is over.
TEST_F(WorkerSessions, ForgetAfterAPauseWhatEndedBeforeIt) {
  begin(1);
  session_.end(1);
  pass();
  session_.forget(1);
  begin(2);
  session_.end(2);
  pass();
  session_.forget(2);
  begin(3);
  session_.end(3);
  EXPECT_THAT([&] { begin(3); }, ThrowsMessage<Error>(HasSubstr("Step 3 is over")));
}

TEST_F(WorkerSessions, EndRequestsOfStepsWhosePartsDoNotCome) {
  auto ended = ask(1);
  pass();
  begin(2);
  EXPECT_TRUE(is_consequence(ended.get()));
}

TEST_F(WorkerSessions, BoundTheStepsThatAreAskedFor) {
  for (std::int64_t step = 0; step < 10'000; ++step) session_.exchange(step);
  EXPECT_THAT([&] { session_.exchange(10'000); },
              ThrowsMessage<ResourceExhaustedError>(
                  HasSubstr("session a has 10000 steps on /job:ps/replica:0/task:0")));
  session_.exchange(7);
}

}  // namespace
}  // namespace kolo::detail
