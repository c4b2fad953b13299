#include <kolo/collectives/engine/tensor_queue.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include <kolo/core/base/error.h>

#include "simulated_negotiation.h"

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::ThrowsMessage;

class TensorQueueTest : public testing::Test {
 protected:
  OperationPtr operation(const std::string& name, std::span<float> memory = {}, bool writes = true) {
    const auto made = std::make_shared<EngineOperation>();
    made->request = allreduce_request(name);
    made->completion = completion_;
    made->submitted = now_;
    made->writes = writes;
    made->buffers = {TypedBuffer::of(memory)};
    return made;
  }
  void finish(const OperationPtr& operation, const std::exception_ptr& error = nullptr) {
    EngineOperation* const one = operation.get();
    queue_.finish({&one, 1}, error);
  }
  // As operation(name, memory) is, but for its request.
  std::optional<bool> add_again(const std::string& name, std::span<float> memory = {}) {
    const auto made = std::make_shared<EngineOperation>();
    made->submitted = now_;
    made->completion = completion_;
    made->buffers = {TypedBuffer::of(memory)};
    const Reduction sum;
    const auto result = queue_.add_again(made, {.name = name, .buffer = made->buffers[0], .reduction = sum});
    if (result) again_.push_back(made);
    return result;
  }
  std::vector<OperationPtr> again_;
  TensorQueue::Clock::time_point now_{1h};
  std::shared_ptr<EngineCompletion> completion_ = std::make_shared<EngineCompletion>();
  TensorQueue queue_{3, /*check_overlap=*/true};
  std::vector<TensorQueue::Item> items_;
};

TEST_F(TensorQueueTest, RefusesANameThatIsPending) {
  const auto first = operation("x");
  queue_.add(first);
  EXPECT_THAT([&] { queue_.add(operation("x")); },
              ThrowsMessage<InvalidArgumentError>(
                  "allreduce x is already pending on rank 3; wait for it or give it another name"));
  finish(first);
  EXPECT_NO_THROW(queue_.add(operation("x")));
}

TEST_F(TensorQueueTest, KnowsANameThatComesAgain) {
  std::vector<float> memory(4);  // as large as allreduce_request's tensor
  const auto first = operation("x", memory);
  queue_.add(first);
  EXPECT_EQ(add_again("x", memory), std::nullopt) << "while it is pending";
  finish(first);
  EXPECT_EQ(add_again("y", memory), std::nullopt);
  EXPECT_EQ(add_again("x", std::span(memory).first(3)), std::nullopt);
  EXPECT_EQ(add_again("x", memory), false);  // the queue was not empty
  EXPECT_EQ(again_.at(0)->request, first->request);
  EXPECT_THROW(queue_.add(operation("x")), InvalidArgumentError);
}

TEST_F(TensorQueueTest, ForgetsFreeNamesWhenThereAreTooMany) {
  std::vector<float> memory(4);
  for (int i = 0; i < 5000; ++i) {
    const auto one = operation(std::to_string(i), memory);
    queue_.add(one);
    finish(one);
  }
  EXPECT_EQ(add_again("0", memory), std::nullopt);
  EXPECT_TRUE(add_again("4999", memory));
}

TEST_F(TensorQueueTest, GathersForACycle) {
  queue_.add(operation("x"));
  EXPECT_TRUE(queue_.take(now_ + 1ms, 5ms, items_));
  EXPECT_TRUE(items_.empty());
  queue_.add(operation("y"));
  EXPECT_FALSE(queue_.take(now_ + 5ms, 5ms, items_));
  EXPECT_EQ(items_.size(), 2U);
}

TEST_F(TensorQueueTest, DoesNotWaitForTheCycleWhenSomebodyWaits) {
  queue_.add(operation("x"));
  queue_.hurry();
  queue_.take(now_, 5ms, items_);
  EXPECT_EQ(items_.size(), 1U);
  queue_.add(operation("y"));
  EXPECT_TRUE(queue_.take(now_, 5ms, items_));
}

TEST_F(TensorQueueTest, CountsUnnamedCallsOfEachKind) {
  EXPECT_EQ(queue_.next_name(OpKind::allreduce), "allreduce.noname.0");
  EXPECT_EQ(queue_.next_name(OpKind::allgather), "allgather.noname.0");
  EXPECT_EQ(queue_.next_name(OpKind::allreduce), "allreduce.noname.1");
}

TEST_F(TensorQueueTest, FindsMemoryThatTwoOperationsShare) {
  std::vector<float> memory(10);
  queue_.add(operation("x", std::span(memory).first(5)));
  EXPECT_THAT([&] { queue_.add(operation("y", std::span(memory).subspan(4))); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("allreduce x, which is pending on rank 3")));
  EXPECT_NO_THROW(queue_.add(operation("y", std::span(memory).subspan(5))));
}

TEST_F(TensorQueueTest, LetsReadersShareMemory) {
  std::vector<float> memory(10);
  queue_.add(operation("x", memory, false));
  EXPECT_NO_THROW(queue_.add(operation("y", memory, false)));
  EXPECT_THROW(queue_.add(operation("z", memory, true)), InvalidArgumentError);
}

TEST_F(TensorQueueTest, TakesARefusalOfAPendingNameForNoRound) {
  queue_.add(operation("x"));
  EXPECT_FALSE(queue_.refuse("x", "root rank 7 is outside"));
  EXPECT_FALSE(queue_.refuse("y", "root rank 7 is outside"));
  queue_.take(now_, 0ms, items_);
  ASSERT_EQ(items_.size(), 2U);
  EXPECT_EQ(items_[1].refused->name, "y");
}

TEST_F(TensorQueueTest, KeepsItsFirstError) {
  queue_.break_off(std::make_exception_ptr(UnavailableError("first")));
  queue_.break_off(std::make_exception_ptr(UnavailableError("second")));
  EXPECT_THAT([&] { queue_.add(operation("x")); }, ThrowsMessage<UnavailableError>("first"));
}

TEST_F(TensorQueueTest, TakesNamesFromManyThreads) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      for (int i = 0; i < 200; ++i) queue_.add(operation(std::to_string(1000 * t + i)));
    });
  std::size_t taken = 0;
  while (taken < 800) {
    queue_.hurry();
    queue_.take(now_, 0ms, items_);
    taken += items_.size();
    for (const auto& item : items_) finish(item.operation);
  }
  EXPECT_EQ(taken, 800U);
}

TEST_F(TensorQueueTest, TakesNamesThatComeAgainFromManyThreads) {
  constexpr int kThreads = 4, kTurns = 200;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([this, t] {
      const std::string own = std::to_string(t);
      std::vector<float> memory(4);
      const Reduction sum;
      for (int turn = 0; turn < kTurns; ++turn) {
        auto one = operation(own, memory);
        if (turn == 0) {
          queue_.add(one);
        } else {
          one = make_operation();
          one->completion = completion_;
          one->buffers = {TypedBuffer::of(std::span(memory))};
          EXPECT_TRUE(queue_.add_again(one, {.name = own, .buffer = one->buffers[0], .reduction = sum}));
        }
        one->get();
        EXPECT_EQ(memory[0], static_cast<float>(turn + 1));
      }
    });
  for (int taken = 0; taken < kThreads * kTurns;) {
    queue_.hurry();
    queue_.take(now_, 0ms, items_);
    for (const auto& item : items_) {
      ++*reinterpret_cast<float*>(item.operation->buffers[0].bytes);
      finish(item.operation);
      ++taken;
    }
  }
}

TEST_F(TensorQueueTest, WakesTheOneWhoWaits) {
  const auto one = operation("x");
  queue_.add(one);
  std::jthread other([&] { finish(one, std::make_exception_ptr(AbortedError("end"))); });
  EXPECT_THAT([&] { one->get(); }, ThrowsMessage<AbortedError>("end"));
}

TEST_F(TensorQueueTest, CountsUnnamedCallsFromWhereItIsTold) {
  queue_.next_name(OpKind::allreduce);
  UnnamedCalls calls = queue_.unnamed_calls();
  calls[static_cast<std::size_t>(OpKind::allreduce)] += 6;
  queue_.count_unnamed_from(calls);
  EXPECT_EQ(queue_.next_name(OpKind::allreduce), "allreduce.noname.7");
  EXPECT_EQ(queue_.next_name(OpKind::barrier), "barrier.noname.0");
}

class JoinedQueue : public TensorQueueTest {
 protected:
  JoinedQueue() {
    Request join;
    join.kind = OpKind::join;
    join.name = queue_.next_name(OpKind::join);
    join_ = operation(join.name);
    join_->request = std::make_shared<const Request>(join);
    queue_.add(join_);
  }
  OperationPtr join_;
};

// What all ranks agree on when the last one joins is what this rank had then.
TEST_F(JoinedQueue, CountsNoCallThatItRefuses) {
  EXPECT_THAT([&] { queue_.next_name(OpKind::allreduce); },
              ThrowsMessage<FailedPreconditionError>(
                  HasSubstr("allreduce allreduce.noname.0: rank 3 has joined; wait for join() to return")));
  finish(join_);
  EXPECT_EQ(queue_.next_name(OpKind::allreduce), "allreduce.noname.0");
}

// The others' call of this name goes on with this rank's zeros.
TEST_F(JoinedQueue, TellsNobodyOfACallThatFailsHere) {
  EXPECT_FALSE(queue_.refuse("x", "no"));
  queue_.take(now_ + 1s, 1ms, items_);
  ASSERT_EQ(items_.size(), 1U);
  EXPECT_EQ(items_[0].operation, join_);
}

}  // namespace
}  // namespace kolo::detail
