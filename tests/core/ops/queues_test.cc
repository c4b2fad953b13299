#include <kolo/core/ops/queues.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/graph_def.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/op_checks.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor f32(float value) { return Tensor::scalar<float>(value); }

// A queue of f32 scalars named "jobs", with every op on it.
class Queues : public testing::Test {
 protected:
  explicit Queues(FIFOQueueOptions options = {.shapes = {Shape()}})
      : queue_(s_.named("jobs"), {DType::f32}, std::move(options)) {}

  void put(std::initializer_list<float> values) {
    for (const float value : values) session_.run(put_, {{x_, f32(value)}});
  }
  std::future<void> put_later(float value) {
    return std::async(std::launch::async, [this, value] { session_.run(put_, {{x_, f32(value)}}); });
  }
  float take() { return session_.run(take_).value<float>(); }
  std::future<float> take_later() {
    return std::async(std::launch::async, [this] { return take(); });
  }
  int size() { return session_.run(size_).value<std::int32_t>(); }
  std::vector<float> run_vector(const Outputs& components) {
    const Tensor value = session_.run(components.at(0));
    return {value.span<float>().begin(), value.span<float>().end()};
  }

  Graph graph_;
  Scope s_{graph_};
  FIFOQueue queue_;
  Output x_ = placeholder(s_, DType::f32, {});
  Operation put_ = enqueue(s_.named("put"), queue_, {x_});
  Output take_ = dequeue(s_.named("take"), queue_)[0];
  Output size_ = queue_size(s_, queue_);
  Output is_closed_ = queue_is_closed(s_, queue_);
  Operation close_ = close_queue(s_, queue_);
  Operation close_cancelling_ = close_queue(s_, queue_, true);
  Session session_{graph_};
};

class BoundedQueues : public Queues {
 protected:
  BoundedQueues() : Queues({.capacity = 2, .shapes = {Shape()}}) {}
};

// Long enough for a run that does not wait to be over.
template <typename T>
bool waits(const std::future<T>& run) {
  return run.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout;
}

TEST_F(Queues, GivesElementsInTheOrderInWhichTheyCame) {
  put({5, 6, 7});
  EXPECT_EQ(take(), 5);
  EXPECT_EQ(take(), 6);
  put({8});
  EXPECT_EQ(take(), 7);
  EXPECT_EQ(take(), 8);
  for (const char* op : {"QueueEnqueue", "QueueDequeue", "FIFOQueue"}) record_op_check(op, OpCheck::value);
}

// Row 28 of the cluster's examples.
TEST_F(BoundedQueues, PutWaitsForRoom) {
  put({5, 6});
  auto third = put_later(7);
  EXPECT_TRUE(waits(third));
  EXPECT_EQ(take(), 5);
  third.get();
  EXPECT_EQ(size(), 2);
  EXPECT_EQ(take(), 6);
  EXPECT_EQ(take(), 7);
  record_op_check("QueueSize", OpCheck::value);
}

// Row 29.
TEST_F(Queues, ClosedOneGivesWhatIsLeftToWhoAsksForUpToSoMuch) {
  const Outputs three = dequeue_many(s_, queue_, 3), up_to_three = dequeue_up_to(s_, queue_, 3);
  put({5, 6});
  EXPECT_FALSE(session_.run(is_closed_).value<bool>());
  session_.run(close_);
  EXPECT_TRUE(session_.run(is_closed_).value<bool>());
  EXPECT_THAT([&] { run_vector(three); },
              ThrowsMessage<OutOfRangeError>(HasSubstr("FIFOQueue 'jobs' is closed and has insufficient "
                                                       "elements (requested 3, current size 2)")));
  EXPECT_THAT(run_vector(up_to_three), ElementsAre(5, 6));
  EXPECT_THAT([&] { run_vector(up_to_three); },
              ThrowsMessage<OutOfRangeError>(HasSubstr("(requested 3, current size 0)")));
  EXPECT_THAT([&] { put({7}); }, ThrowsMessage<CancelledError>(HasSubstr("FIFOQueue 'jobs' is closed.")));
  EXPECT_THAT([&] { session_.run(close_); },
              ThrowsMessage<AbortedError>(HasSubstr("Queue 'jobs' is already closed.")));
  for (const char* op : {"QueueDequeueUpTo", "QueueClose", "QueueIsClosed"})
    record_op_check(op, OpCheck::value);
}

TEST_F(Queues, TakeWaitsForAnElement) {
  auto taken = take_later();
  EXPECT_TRUE(waits(taken));
  put({5});
  EXPECT_EQ(taken.get(), 5);
}

TEST_F(Queues, StacksSeveralElements) {
  const Outputs two = dequeue_many(s_, queue_, 2), none = dequeue_many(s_, queue_, 0);
  const Operation rows = enqueue_many(s_, queue_, {constant(s_, Tensor::of<float>({3}, {1, 2, 3}))});
  session_.run(rows);
  EXPECT_THAT(run_vector(two), ElementsAre(1, 2));
  EXPECT_THAT(run_vector(none), ElementsAre());
  EXPECT_EQ(size(), 1);
  record_op_check("QueueEnqueueMany", OpCheck::value);
  record_op_check("QueueDequeueMany", OpCheck::value);
}

TEST_F(BoundedQueues, TakesMoreThanHaveRoomAtATime) {
  const Outputs four = dequeue_many(s_, queue_, 4);
  const Operation rows = enqueue_many(s_, queue_, {constant(s_, Tensor::of<float>({5}, {1, 2, 3, 4, 5}))});
  auto putting = std::async(std::launch::async, [&] { session_.run(rows); });
  EXPECT_THAT(run_vector(four), ElementsAre(1, 2, 3, 4));
  putting.get();
  EXPECT_EQ(size(), 1);
}

TEST_F(Queues, PutsNothingWhereThereAreNoRows) {
  session_.run(enqueue_many(s_, queue_, {constant(s_, Tensor(DType::f32, {0}))}));
  EXPECT_EQ(size(), 0);
}

TEST(QueueElements, HaveSeveralComponentsOfAnyType) {
  Graph graph;
  Scope s(graph);
  const FIFOQueue queue(s, {DType::string, DType::i64}, {.shapes = {Shape{2}, Shape{}}});
  const Operation put = enqueue_many(s, queue,
                                     {constant(s, Tensor::of<std::string>({2, 2}, {"a", "b", "c", "d"})),
                                      constant(s, Tensor::of<std::int64_t>({2}, {7, 8}))});
  const Outputs one = dequeue(s, queue), rest = dequeue_many(s, queue, 1);
  Session session(graph);
  session.run(put);
  const auto first = session.run(std::vector<Fetch>{one[0], one[1]});
  EXPECT_THAT(first[0].span<std::string>(), ElementsAre("a", "b"));
  EXPECT_EQ(first[1].value<std::int64_t>(), 7);
  const auto second = session.run(std::vector<Fetch>{rest[0], rest[1]});
  EXPECT_THAT(second[0].span<std::string>(), ElementsAre("c", "d"));
  EXPECT_EQ(second[0].shape(), (Shape{1, 2}));
  EXPECT_EQ(second[1].value<std::int64_t>(), 8);
}

TEST(QueueElements, HaveAnyShapesWhereNoneAreGiven) {
  Graph graph;
  Scope s(graph);
  const FIFOQueue queue(s, {DType::f32});
  const Output x = placeholder(s, DType::f32);
  const Operation put = enqueue(s, queue, {x});
  const Output taken = dequeue(s, queue)[0];
  EXPECT_FALSE(taken.shape().has_rank());
  Session session(graph);
  session.run(put, {{x, Tensor::of<float>({2}, {1, 2})}});
  session.run(put, {{x, Tensor::of<float>({1, 3}, {1, 2, 3})}});
  EXPECT_EQ(session.run(taken).shape(), (Shape{2}));
  EXPECT_EQ(session.run(taken).shape(), (Shape{1, 3}));
  EXPECT_THAT(
      [&] { dequeue_many(s, queue, 1); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("require the components to have specified shapes")));
}

TEST(QueueElements, AreCopiesOfTheStepsMemory) {
  Graph graph;
  Scope s(graph);
  const FIFOQueue queue(s, {DType::f32}, {.shapes = {Shape{3}}});
  const Output x = placeholder(s, DType::f32, {3});
  const Operation put = enqueue(s, queue, {mul(s, x, x)});
  const Output taken = neg(s, dequeue(s, queue)[0]);
  Session session(graph);
  session.run(put, {{x, Tensor::of<float>({3}, {1, 2, 3})}});
  session.run(put, {{x, Tensor::of<float>({3}, {4, 5, 6})}});
  EXPECT_THAT(session.run(taken).span<float>(), ElementsAre(-1, -4, -9));
  EXPECT_THAT(session.run(taken).span<float>(), ElementsAre(-16, -25, -36));
}

TEST(QueueShapes, AreKnownWhereTheQueueTellsThem) {
  Graph graph;
  Scope s(graph);
  const FIFOQueue queue(s, {DType::f32, DType::i32}, {.shapes = {Shape{2, 3}, Shape()}});
  EXPECT_EQ(queue.handle().shape(), Shape());
  EXPECT_EQ(dequeue(s, queue)[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(dequeue_many(s, queue, 5)[0].shape(), (Shape{5, 2, 3}));
  EXPECT_EQ(dequeue_many(s, queue, 5)[1].shape(), (Shape{5}));
  EXPECT_EQ(dequeue_up_to(s, queue, 5)[1].shape(), (Shape{-1}));
  EXPECT_EQ(queue_size(s, queue).shape(), Shape());
  EXPECT_EQ(queue_is_closed(s, queue).shape(), Shape());
  for (const char* op : {"FIFOQueue", "QueueDequeue", "QueueDequeueMany", "QueueDequeueUpTo", "QueueSize",
                         "QueueIsClosed", "QueueEnqueue", "QueueEnqueueMany", "QueueClose"})
    record_op_check(op, OpCheck::shape);
}

TEST_F(Queues, RefusesAWrongTupleWhereTheGraphIsBuilt) {
  const Output y = placeholder(s_, DType::f32, {2}), i = placeholder(s_, DType::i32, {});
  EXPECT_THAT(
      [&] {
        enqueue(s_, queue_, {x_, x_});
      },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("Wrong number of components in tuple. Expected 1, got 2")));
  EXPECT_THAT([&] { enqueue(s_, queue_, {y}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Shape mismatch in tuple component 0. Expected [], got [2]")));
  EXPECT_THAT([&] { enqueue(s_, queue_, {i}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Type mismatch in tuple component 0. Expected float, got int32")));
  EXPECT_THAT([&] { enqueue_many(s_, queue_, {x_}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Shape mismatch in tuple component 0.")));
}

TEST_F(Queues, RefusesAWrongShapeThatOnlyTheRunTells) {
  const Output y = placeholder(s_, DType::f32);
  const Operation put = enqueue(s_, queue_, {y});
  EXPECT_THAT(
      [&] {
        session_.run(put, {{y, Tensor(DType::f32, {3})}});
      },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("Shape mismatch in tuple component 0. Expected [], got [3]")));
  EXPECT_EQ(size(), 0);
}

TEST(QueueOptions, AreChecked) {
  Graph graph;
  Scope s(graph);
  EXPECT_THROW(FIFOQueue(s, {DType::f32}, {.capacity = 0}), InvalidArgumentError);
  EXPECT_THROW(FIFOQueue(s, {}), InvalidArgumentError);
  EXPECT_THAT([&] { FIFOQueue(s, {DType::f32}, {.shapes = {Shape{-1}}}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("All shapes must be fully defined")));
  EXPECT_THAT(
      [&] {
        FIFOQueue(s, {DType::f32, DType::f32}, {.shapes = {Shape{1}}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("must have the same length as dtypes")));
  const FIFOQueue queue(s, {DType::f32}, {.shapes = {Shape{1}}});
  EXPECT_THAT([&] { dequeue_many(s, queue, -1); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("DequeueManyOp requested -1 < 0 elements")));
  EXPECT_THAT([&] { FIFOQueue(s.container("a b"), {DType::f32}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("container contains invalid characters: a b")));
  EXPECT_THAT([&] { s.add("QueueSize", {constant(s, Tensor::scalar<std::string>("jobs"))}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("must be the handle of a FIFOQueue")));
}

TEST_F(Queues, RefusesAGraphWhoseTakerPromisesOtherElements) {
  const Operation other = s_.add(
      "QueueDequeue", {queue_.handle()},
      {{"component_types", std::vector<std::string>{"f32"}}, {"shapes", std::vector<std::int64_t>{1, 1000}}});
  put({5});
  EXPECT_THAT([&] { session_.run(other.output(0)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("are not its queue's")));
  EXPECT_EQ(size(), 1);
}

TEST(SharedQueues, AreOneByTheirNameAndContainer) {
  Graph graph;
  Scope s(graph);
  const FIFOQueueOptions options{.shapes = {Shape()}, .shared_name = "jobs"};
  const FIFOQueue a(s, {DType::f32}, options), b(s, {DType::f32}, options);
  const FIFOQueue elsewhere(s.container("exp1"), {DType::f32}, options);
  Session session(graph);
  session.run(enqueue(s, a, {constant(s, f32(5))}));
  EXPECT_EQ(session.run(queue_size(s, b)).value<std::int32_t>(), 1);
  EXPECT_EQ(session.run(queue_size(s, elsewhere)).value<std::int32_t>(), 0);
  EXPECT_EQ(session.run(dequeue(s, b)[0]).value<float>(), 5);
  EXPECT_EQ(Session(graph).run(queue_size(s, a)).value<std::int32_t>(), 0);
}

TEST(SharedQueues, MustBeOfOneKind) {
  Graph graph;
  Scope s(graph);
  const auto size_of_shared = [&](std::vector<DType> types, FIFOQueueOptions options) {
    options.shared_name = "q";
    return queue_size(s, FIFOQueue(s, std::move(types), std::move(options)));
  };
  const Output size = size_of_shared({DType::f32}, {.capacity = 2, .shapes = {Shape{3}}});
  const Output larger = size_of_shared({DType::f32}, {.capacity = 3, .shapes = {Shape{3}}});
  const Output whole = size_of_shared({DType::i32}, {.capacity = 2, .shapes = {Shape{3}}});
  const Output shapeless = size_of_shared({DType::f32}, {.capacity = 2});
  Session session(graph);
  session.run(size);
  EXPECT_THAT([&] { session.run(larger); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Shared queue 'q' has capacity 2 but requested capacity was 3")));
  EXPECT_THAT([&] { session.run(whole); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr(
                  "Shared queue 'q' has component types float but requested component types were int32")));
  EXPECT_THAT([&] { session.run(shapeless); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr(
                  "Shared queue 'q' has component shapes [[3]] but requested component shapes were []")));
}

TEST_F(BoundedQueues, CloseLetsPendingPutsFinish) {
  put({5, 6});
  auto pending = put_later(7);
  EXPECT_TRUE(waits(pending));
  session_.run(close_);
  EXPECT_TRUE(waits(pending));
  EXPECT_EQ(take(), 5);
  pending.get();
  EXPECT_THAT(run_vector(dequeue_many(s_, queue_, 2)), ElementsAre(6, 7));
}

TEST_F(BoundedQueues, CloseMayCancelPendingPuts) {
  put({5, 6});
  auto pending = put_later(7);
  EXPECT_TRUE(waits(pending));
  session_.run(close_cancelling_);
  EXPECT_THAT([&] { pending.get(); },
              ThrowsMessage<CancelledError>(HasSubstr("Enqueue operation was cancelled")));
  EXPECT_EQ(size(), 2);
}

TEST_F(Queues, CloseEndsTheTakesThatWait) {
  auto taken = take_later();
  EXPECT_TRUE(waits(taken));
  session_.run(close_);
  EXPECT_THAT([&] { taken.get(); },
              ThrowsMessage<OutOfRangeError>(HasSubstr("(requested 1, current size 0)")));
}

TEST_F(Queues, TakeThatRunsOutOfTimePutsItsElementsBackInFront) {
  const Outputs three = dequeue_many(s_, queue_, 3);
  put({5, 6});
  EXPECT_THAT([&] { session_.run({three[0]}, {}, {.timeout_in_ms = 50}); },
              ThrowsMessage<DeadlineExceededError>(HasSubstr("Timed out waiting for notification")));
  put({7});
  EXPECT_THAT(run_vector(three), ElementsAre(5, 6, 7));
}

TEST_F(Queues, WhoStandsBehindATakeThatEndsIsServed) {
  const Outputs three = dequeue_many(s_, queue_, 3);
  auto many = std::async(std::launch::async, [&] { session_.run({three[0]}, {}, {.timeout_in_ms = 300}); });
  EXPECT_TRUE(waits(many));
  auto one = take_later();
  put({5, 6});
  EXPECT_TRUE(waits(one));  // first come, first served
  EXPECT_THROW(many.get(), DeadlineExceededError);
  EXPECT_EQ(one.get(), 5);
  EXPECT_EQ(size(), 1);
}

TEST_F(Queues, BeginsAnewWhenItIsReset) {
  const Operation reset = reset_queue(s_, queue_, "of the chief");
  auto taken = take_later();
  EXPECT_TRUE(waits(taken));
  session_.run(reset);
  EXPECT_THAT([&] { taken.get(); }, ThrowsMessage<AbortedError>(HasSubstr("of the chief")));
  put({5, 6});
  session_.run(close_);
  session_.run(reset);
  EXPECT_EQ(size(), 0);
  put({7});
  EXPECT_EQ(take(), 7);
  record_op_check("QueueReset", OpCheck::value);
  record_op_check("QueueReset", OpCheck::shape);
}

TEST_F(BoundedQueues, EndThePutsThatWaitWhenTheyAreReset) {
  put({5, 6});
  auto pending = put_later(7);
  EXPECT_TRUE(waits(pending));
  session_.run(reset_queue(s_, queue_, "of the chief"));
  EXPECT_THROW(pending.get(), AbortedError);
  EXPECT_EQ(size(), 0);
}

TEST_F(Queues, ClosedSessionEndsItsWaits) {
  auto taken = take_later();
  EXPECT_TRUE(waits(taken));
  session_.close();
  EXPECT_THROW(taken.get(), CancelledError);
}

TEST_F(Queues, FailureOfTheStepEndsItsWaits) {
  // On the host: what fails in a GPU's stream is told when somebody waits for the stream.
  const Scope host = s_.device("/cpu:0");
  const Output bad = identity(host, placeholder(host.named("unfed"), DType::f32, {}));
  EXPECT_THAT([&] { session_.run({take_, bad}); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("unfed")));
  put({5});
  EXPECT_EQ(size(), 1);
}

// A waiting run holds no thread of the pool: many wait while others run.
TEST_F(Queues, ManyMayWaitAtOnce) {
  std::vector<std::future<float>> takes;
  for (int i = 0; i < 20; ++i) takes.push_back(take_later());
  float sum = 0;
  for (int i = 0; i < 20; ++i) put({static_cast<float>(i)});
  for (auto& taken : takes) sum += taken.get();
  EXPECT_EQ(sum, 190);
}

TEST_F(BoundedQueues, LosesNothingAmongManyThreads) {
  constexpr int kThreads = 4, kEach = 50;
  std::vector<std::future<void>> puts;
  std::vector<std::future<double>> takes;
  for (int t = 0; t < kThreads; ++t) {
    puts.push_back(std::async(std::launch::async, [this, t] {
      for (int i = 0; i < kEach; ++i) put({static_cast<float>(t * kEach + i)});
    }));
    takes.push_back(std::async(std::launch::async, [this] {
      double sum = 0;
      for (int i = 0; i < kEach; ++i) sum += take();
      return sum;
    }));
  }
  for (auto& put : puts) put.get();
  double sum = 0;
  for (auto& taken : takes) sum += taken.get();
  EXPECT_EQ(sum, kThreads * kEach * (kThreads * kEach - 1) / 2);
  EXPECT_EQ(size(), 0);
}

TEST_F(Queues, WorkInBranchesAndLoops) {
  const Output yes = placeholder(s_, DType::boolean, {});
  const Outputs branch = cond(
      s_, yes, [&](const Scope& inner) { return Outputs{dequeue(inner, queue_)[0]}; },
      [&](const Scope& inner) { return Outputs{constant(inner, f32(-1))}; });
  const Output none = constant(s_, f32(0));
  const Outputs loop = while_loop(
      s_, [&](const Scope& inner, const Outputs& v) { return less(inner, v[0], constant(inner, f32(3))); },
      [&](const Scope& inner, const Outputs& v) {
        return Outputs{add(inner, v[0], constant(inner, f32(1))),
                       add(inner, v[1], dequeue(inner, queue_)[0])};
      },
      {none, none});
  put({5, 6, 7, 8});
  EXPECT_EQ(session_.run(branch[0], {{yes, Tensor::scalar<bool>(false)}}).value<float>(), -1);
  EXPECT_EQ(session_.run(branch[0], {{yes, Tensor::scalar<bool>(true)}}).value<float>(), 5);
  EXPECT_EQ(session_.run(loop[1]).value<float>(), 6 + 7 + 8);
}

TEST_F(Queues, ServeWhatAnImportMapsOntoThem) {
  const GraphDef definition = to_graph_def(graph_);
  const FIFOQueue mine(s_.named("mine"), queue_.types(), {.shapes = queue_.shapes()});
  import_graph_def(s_, definition, {.prefix = "in", .input_map = {{queue_.name(), mine.handle()}}});
  EXPECT_EQ(graph_.find_node("in/put")->input(0), mine.handle());
}

TEST_F(Queues, SurviveTheWayThroughAGraphDefinition) {
  Graph copy;
  import_graph_def(Scope(copy), to_graph_def(graph_));
  Session session(copy);
  session.run(Operation(copy.find_node("put")), {{copy.find_output("Placeholder:0"), f32(5)}});
  EXPECT_EQ(session.run("take:0").value<float>(), 5);
}

}  // namespace
}  // namespace kolo
