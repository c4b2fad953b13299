// Takes of a queue of numbers that want the newest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/queues.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/op_checks.h"

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

bool waits(const std::future<std::int64_t>& run) {
  return run.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout;
}

// A queue of numbers, and who takes the newest above a fed one, for a fed generation.
class QueuesOfNumbers : public testing::Test {
 protected:
  std::int64_t take_newest(std::int64_t than, std::int64_t generation = 0) {
    return session_.run(newest_, {{than_, Tensor::scalar(than)}, {generation_, Tensor::scalar(generation)}})
        .value<std::int64_t>();
  }
  std::future<std::int64_t> take_newest_later(std::int64_t than) {
    return std::async(std::launch::async, [this, than] { return take_newest(than); });
  }
  void put_numbers(std::vector<std::int64_t> numbers) {
    for (const std::int64_t number : numbers) session_.run(put_number_, {{number_, Tensor::scalar(number)}});
  }
  std::int64_t take_number() { return session_.run(any_).value<std::int64_t>(); }

  Graph graph_;
  Scope s_{graph_};
  FIFOQueue numbers_{s_.named("numbers"), {DType::i64}, {.shapes = {Shape()}}};
  Output number_ = placeholder(s_, DType::i64, Shape()), than_ = placeholder(s_, DType::i64, Shape()),
         generation_ = placeholder(s_, DType::i64, Shape());
  Operation put_number_ = enqueue(s_, numbers_, {number_});
  Output any_ = dequeue(s_, numbers_)[0];
  Output newest_ = dequeue_newest(s_, numbers_, than_, generation_);
  Session session_{graph_};
};

TEST_F(QueuesOfNumbers, GiveTheGreatestAndDropSmallerOnes) {
  put_numbers({1, 3, 2, 3});
  EXPECT_EQ(take_newest(1), 3);
  EXPECT_EQ(take_newest(2), 3);
  put_numbers({4});
  EXPECT_EQ(take_number(), 4);
  record_op_check("QueueDequeueNewest", OpCheck::value);
}

TEST_F(QueuesOfNumbers, WaitForAGreaterOneAndLetOthersPass) {
  put_numbers({1, 1});
  auto waiting = take_newest_later(1);
  EXPECT_TRUE(waits(waiting));
  EXPECT_EQ(take_newest(0), 1);
  EXPECT_EQ(take_number(), 1);
  auto greatest = take_newest_later(5);
  EXPECT_TRUE(waits(greatest));
  put_numbers({2});
  EXPECT_EQ(waiting.get(), 2);
  session_.run(close_queue(s_, numbers_));
  EXPECT_THAT([&] { greatest.get(); },
              ThrowsMessage<OutOfRangeError>(HasSubstr("(requested 1, current size 0)")));
}

TEST_F(QueuesOfNumbers, RefuseAGenerationThatIsOver) {
  const Output now = queue_generation(s_, numbers_);
  const Operation reset = reset_queue(s_, numbers_, "of the chief", generation_);
  EXPECT_EQ(session_.run(now).value<std::int64_t>(), 0);
  session_.run(reset, {{generation_, Tensor::scalar<std::int64_t>(3)}});
  EXPECT_EQ(session_.run(now).value<std::int64_t>(), 3);
  put_numbers({6});
  EXPECT_THAT([&] { take_newest(0, 0); }, ThrowsMessage<AbortedError>(HasSubstr("of the chief")));
  EXPECT_EQ(take_newest(0, 3), 6);
  record_op_check("QueueGeneration", OpCheck::value);
}

TEST_F(QueuesOfNumbers, AreOfScalars) {
  EXPECT_EQ(newest_.shape(), Shape());
  EXPECT_EQ(queue_generation(s_, numbers_).shape(), Shape());
  const Output two = zeros(s_, DType::i64, {2});
  EXPECT_THROW(dequeue_newest(s_, numbers_, two, generation_), InvalidArgumentError);
  EXPECT_THROW(reset_queue(s_, numbers_, "", two), InvalidArgumentError);
  const FIFOQueue reals(s_, {DType::f32}, {.shapes = {Shape()}});
  EXPECT_THAT([&] { dequeue_newest(s_, reals, than_, generation_); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("is not a queue of i64 scalars")));
  for (const char* op : {"QueueDequeueNewest", "QueueGeneration"}) record_op_check(op, OpCheck::shape);
}

}  // namespace
}  // namespace kolo
