// The states behind queues and accumulators, without a session: who waits, and what a cancelled call leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/core/kernels/accumulator.h>
#include <kolo/core/kernels/containers.h>
#include <kolo/core/kernels/queue.h>
#include <kolo/core/ops/queues.h>

namespace kolo {
namespace {

using detail::AccumulatorState;
using detail::GradientSender;
using detail::QueueState;
using testing::ElementsAre;

struct Client final : detail::QueueClient {
  void finished(std::exception_ptr error) override {
    text = error ? message_of(error) : "";
    ++calls;  // last: who waits for it may go
  }
  std::vector<float> values() const {
    std::vector<float> values;
    for (const auto& element : elements) values.push_back(element[0].value<float>());
    return values;
  }
  std::atomic<int> calls = 0;
  std::string text;
};

class QueueStates : public testing::Test {
 protected:
  void put(Client& client, std::initializer_list<float> values) {
    for (const float value : values) client.elements.push_back({Tensor::scalar<float>(value)});
    queue_.put(client);
  }
  QueueState queue_{"q", 2, {{DType::f32}, {Shape()}}};
  Client first_, second_, third_;
};

TEST_F(QueueStates, CancelledTakeGivesBackWhatItHeld) {
  queue_.take(first_, 3, true);
  put(second_, {1, 2});
  EXPECT_EQ(queue_.size(), 0u);
  queue_.cancel(first_);
  EXPECT_EQ(first_.text, "Dequeue operation was cancelled");
  EXPECT_EQ(queue_.size(), 2u);
  queue_.take(third_, 2, true);
  EXPECT_THAT(third_.values(), ElementsAre(1, 2));
}

// A queue may be over-full then: who puts waits until there is room again.
TEST_F(QueueStates, GivesBackBeforeWhatCameLater) {
  queue_.take(first_, 4, true);
  put(second_, {1, 2, 3});
  put(second_, {4, 5});  // the first take has its four now
  EXPECT_THAT(first_.values(), ElementsAre(1, 2, 3, 4));
  Client held;
  queue_.take(held, 4, true);
  Client more;
  put(more, {6, 7});
  queue_.cancel(held);
  EXPECT_EQ(queue_.size(), 3u);
  Client waiting;
  put(waiting, {8});
  EXPECT_EQ(waiting.calls, 0);
  queue_.take(third_, 4, true);
  EXPECT_THAT(third_.values(), ElementsAre(5, 6, 7, 8));
  EXPECT_EQ(waiting.calls, 1);
}

TEST_F(QueueStates, CancelledPutLeavesWhatIsIn) {
  put(first_, {1, 2, 3});
  EXPECT_EQ(first_.calls, 0);
  put(second_, {4});
  queue_.cancel(first_);
  EXPECT_EQ(first_.text, "Enqueue operation was cancelled");
  queue_.take(third_, 3, true);
  EXPECT_THAT(third_.values(), ElementsAre(1, 2, 4));
  EXPECT_EQ(second_.calls, 1);
}

TEST_F(QueueStates, CancelOfACallThatIsOverDoesNothing) {
  put(first_, {1});
  queue_.cancel(first_);
  queue_.take(second_, 1, true);
  queue_.cancel(second_);
  EXPECT_EQ(first_.calls, 1);
  EXPECT_EQ(second_.calls, 1);
  EXPECT_EQ(second_.text, "");
}

// A take that is cancelled has all that it asked for, or nothing: whoever comes first, the put or the end.
TEST(QueueOfManyThreads, LosesNothingToCancelledTakes) {
  constexpr int kPuts = 2000;
  QueueState queue("q", -1, {{DType::f32}, {Shape()}});
  std::thread putting([&] {
    for (int i = 0; i < kPuts; ++i) {
      Client client;
      client.elements.push_back({Tensor::scalar<float>(1)});
      queue.put(client);
    }
  });
  std::size_t taken = 0;
  while (taken + queue.size() < kPuts) {
    Client client;
    queue.take(client, 2, true);
    queue.cancel(client);
    while (client.calls == 0) std::this_thread::yield();
    if (client.text.empty()) taken += client.elements.size();
  }
  putting.join();
  EXPECT_EQ(taken + queue.size(), std::size_t{kPuts});
}

struct Taker final : detail::GradientTaker {
  void take(const detail::Gradient& gradient) override { mean = gradient.values.value<float>(); }
  void finished(std::exception_ptr error) override { text = error ? message_of(error) : "taken"; }
  float mean = -1;
  std::string text;
};

class AccumulatorStates : public testing::Test {
 protected:
  std::shared_ptr<AccumulatorState> make(bool ordered) {
    const ConditionalAccumulator made(scope_, DType::f32, Shape(), {.ordered = ordered});
    return std::dynamic_pointer_cast<AccumulatorState>(containers_.find_or_make(*made.handle().node));
  }
  // Of tasks 1, 2 and 0, in this order.
  static void apply_three(AccumulatorState& state) {
    state.apply({Tensor::scalar<float>(1e8f)}, 0, {"worker", 1});
    state.apply({Tensor::scalar<float>(-1e8f)}, 0, {"worker", 2});
    state.apply({Tensor::scalar<float>(1)}, 0, {"worker", 0});
  }
  Graph graph_;
  Scope scope_{graph_};
  Containers containers_;
  Taker taker_;
};

TEST_F(AccumulatorStates, AddAsGradientsCome) {
  const auto state = make(false);
  apply_three(*state);
  state->take(taker_, 3);
  EXPECT_EQ(taker_.mean, 1.0f / 3);
}

TEST_F(AccumulatorStates, AddBySenderWhereTheyAreOrdered) {
  const auto state = make(true);
  apply_three(*state);
  state->take(taker_, 3);
  EXPECT_EQ(taker_.mean, 0);  // 1 + 1e8 is 1e8
}

TEST_F(AccumulatorStates, CountLateGradientsBySender) {
  const auto state = make(false);
  state->set_step(1);
  apply_three(*state);
  state->apply({Tensor::scalar<float>(1)}, 0, {"worker", 2});
  EXPECT_EQ(state->num_accumulated(), 0);
  EXPECT_EQ(state->num_dropped().at({"worker", 2}), 2);
  EXPECT_EQ(state->num_dropped().at({"worker", 0}), 1);
}

TEST_F(AccumulatorStates, CancelledTakeTakesNothing) {
  const auto state = make(false);
  state->take(taker_, 4);
  apply_three(*state);
  state->cancel(taker_);
  EXPECT_EQ(taker_.text, "TakeGrad operation was cancelled");
  EXPECT_EQ(state->num_accumulated(), 3);
}

}  // namespace
}  // namespace kolo
