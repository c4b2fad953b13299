#include <kolo/collectives/schedule/schedule.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/runtime/group.h>

namespace kolo {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int kGradients = 5;

ScheduleSpec five_buckets(DType dtype = DType::f32) {
  ScheduleSpec spec{.name = "test", .limits = {.first_bytes = 256, .bytes = 256}};
  for (int i = 0; i < kGradients; ++i)
    spec.gradients.push_back({"g" + std::to_string(i), Shape{64 + i}, dtype});
  return spec;
}

std::span<float> gradient(const Schedule& schedule, int i) {
  const GradientPlace& place = schedule.gradients()[static_cast<std::size_t>(i)];
  auto* begin = place.bucket->memory()->data() + place.offset;
  return {reinterpret_cast<float*>(begin), 64u + static_cast<unsigned>(i)};
}

// One step of all ranks: what each bucket's `done` was given, in the order of the buckets.
std::vector<std::exception_ptr> run_step(Schedule& schedule,
                                         const std::vector<int>& order = {0, 1, 2, 3, 4}) {
  schedule.begin();
  std::vector<std::promise<std::exception_ptr>> promises(order.size());
  for (const int bucket : order) {
    for (auto& value : gradient(schedule, bucket)) value = static_cast<float>(rank() + bucket);
    schedule.buckets()[bucket].submit(
        [&promise = promises[bucket]](std::exception_ptr error) { promise.set_value(error); });
  }
  std::vector<std::exception_ptr> results;
  for (auto& promise : promises) results.push_back(promise.get_future().get());
  schedule.end();
  return results;
}

float average_of_ranks() { return static_cast<float>(size() - 1) / 2; }

TEST(MpiSchedule, AveragesBucketsThatEachRankSubmitsInItsOwnOrder) {
  Schedule schedule(five_buckets());
  schedule.compare();
  ASSERT_EQ(schedule.buckets().size(), 5u);
  for (int step = 0; step < 20; ++step) {
    std::vector<int> order(kGradients);
    for (int i = 0; i < kGradients; ++i)
      order[i] = (i * (rank() % 2 == 0 ? 1 : 4) + step + rank()) % kGradients;
    EXPECT_THAT(run_step(schedule, order), Each(nullptr));
    for (int i = 0; i < kGradients; ++i)
      EXPECT_THAT(gradient(schedule, i), Each(average_of_ranks() + static_cast<float>(i)));
  }
  EXPECT_EQ(schedule.extra_exchanges(), 0);
}

// What an executor does: it writes when it may, and leaves the looking to another thread before it waits.
template <typename Start>
std::exception_ptr finished(Schedule& schedule, const Start& start) {
  std::promise<std::exception_ptr> over;
  start([&](std::exception_ptr error) { over.set_value(std::move(error)); });
  schedule.hand_over();
  return over.get_future().get();
}

// One large bucket that is read where it lies: the sum of each element, as this rank finds it `pause` later.
std::vector<float> sums_as_read(Schedule& schedule, float value, std::chrono::milliseconds pause, bool asks) {
  schedule.begin();
  EXPECT_EQ(finished(schedule, [&](auto done) { schedule.when_writable(done); }), nullptr);
  const std::size_t count = static_cast<std::size_t>(schedule.buckets()[0].contents().bytes) / sizeof(float);
  auto* const own = reinterpret_cast<float*>(schedule.buckets()[0].memory()->data());
  std::fill_n(own, count, value);
  EXPECT_EQ(finished(schedule,
                     [&](auto done) {
                       if (asks) schedule.buckets()[0].submit_to_read(done);
                       else schedule.buckets()[0].submit(done);
                     }),
            nullptr);
  std::this_thread::sleep_for(pause);
  std::vector<float> sums(count);
  const auto ranks = schedule.buckets()[0].memory_of_ranks();
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::byte* memory : ranks) sums[i] += reinterpret_cast<const float*>(memory)[i];
    if (ranks.empty()) sums[i] = own[i];
  }
  schedule.end();
  return sums;
}

ScheduleSpec one_large_bucket() {
  return {.name = "large", .reduction = ReduceOp::sum, .gradients = {{"w", Shape{100000}, DType::f32}}};
}

bool may_read() { return size() == 2 || size() == 3; }

// Ranks are late by turns, also with what they read: nobody's next gradients may be in it.
TEST(MpiSchedule, LetsFewRanksReadEachOthersBucketsWhereTheyLie) {
  Schedule schedule(one_large_bucket());
  schedule.compare();
  EXPECT_EQ(schedule.buckets()[0].may_be_read(), may_read());
  for (int step = 0; step < 12; ++step) {
    const auto value = static_cast<float>(step * 10 + rank());
    const bool late = step % (size() + 1) == rank();
    const auto sums = sums_as_read(schedule, value, std::chrono::milliseconds(late ? 20 : 0), true);
    EXPECT_EQ(!schedule.buckets()[0].memory_of_ranks().empty(), may_read());
    EXPECT_THAT(sums, Each(static_cast<float>(size() * step * 10 + size() * (size() - 1) / 2))) << step;
  }
  EXPECT_EQ(schedule.extra_exchanges(), 0);
}

TEST(MpiSchedule, ReducesABucketThatOneRankDoesNotReadAtOnce) {
  Schedule schedule(one_large_bucket());
  schedule.compare();
  for (int step = 0; step < 6; ++step) {
    const bool asks = step % 2 == 0 || rank() > 0;
    const auto sums =
        sums_as_read(schedule, static_cast<float>(step + rank()), std::chrono::milliseconds(0), asks);
    EXPECT_EQ(schedule.buckets()[0].memory_of_ranks().empty(), !may_read() || step % 2 == 1);
    EXPECT_THAT(sums, Each(static_cast<float>(size() * step + size() * (size() - 1) / 2))) << step;
  }
}

// The rank that leaves, and takes its memory with it, has not disturbed those that still read.
TEST(MpiSchedule, EndsDataBehindAStepThatOthersStillRead) {
  if (size() == 1) GTEST_SKIP() << "one rank reads nobody's buckets";
  std::optional<Schedule> schedule(one_large_bucket());
  schedule->compare();
  const bool first = rank() == 0;
  const auto sums =
      sums_as_read(*schedule, static_cast<float>(rank()), std::chrono::milliseconds(first ? 0 : 50), true);
  EXPECT_THAT(sums, Each(static_cast<float>(size() * (size() - 1) / 2)));
  if (first) {
    schedule->leave(StepFlag::end_of_data, "");
  } else {
    schedule->begin();
    EXPECT_EQ(finished(*schedule, [&](auto done) { schedule->when_writable(done); }), nullptr);
    const auto error = finished(*schedule, [&](auto done) { schedule->buckets()[0].submit_to_read(done); });
    EXPECT_THROW(std::rethrow_exception(error), OutOfRangeError);
    schedule->end();
  }
  EXPECT_TRUE(schedule->take_outcome().has(StepFlag::end_of_data));
  sums_as_read(*schedule, 1, std::chrono::milliseconds(first ? 50 : 0), true);
  schedule.reset();
}

// Its gradients wait for a rank that is late in the step before.
TEST(MpiSchedule, EndsAWaitForLateReadersWhereItsStepFails) {
  if (!may_read()) GTEST_SKIP() << "nobody reads";
  Schedule schedule(one_large_bucket());
  schedule.compare();
  const bool fails = rank() == 0;
  sums_as_read(schedule, 1, std::chrono::milliseconds(fails ? 0 : 300), true);
  if (fails) {
    schedule.begin();
    std::promise<std::exception_ptr> writable;
    schedule.when_writable([&](std::exception_ptr error) { writable.set_value(std::move(error)); });
    schedule.leave(StepFlag::failed, "out of time");
    const auto over = writable.get_future();
    EXPECT_EQ(over.wait_for(std::chrono::seconds(0)), std::future_status::ready);
    schedule.end();
  } else {
    schedule.begin();
    finished(schedule, [&](auto done) { schedule.when_writable(done); });
    const auto error = finished(schedule, [&](auto done) { schedule.buckets()[0].submit_to_read(done); });
    EXPECT_THAT([&] { std::rethrow_exception(error); },
                ThrowsMessage<AbortedError>(HasSubstr("rank 0 failed in step 2: out of time")));
    schedule.end();
  }
}

TEST(MpiSchedule, HandsOverAllThatStandsBehindABucket) {
  auto spec = five_buckets();
  for (auto& gradient : spec.gradients) gradient.shape = Shape{2000};
  Schedule schedule(spec);
  schedule.compare();
  for (int step = 0; step < 50; ++step) {
    schedule.begin();
    EXPECT_EQ(finished(schedule, [&](auto done) { schedule.when_writable(done); }), nullptr);
    std::vector<std::promise<std::exception_ptr>> over(schedule.buckets().size());
    for (std::size_t b = 0; b < over.size(); ++b)
      schedule.buckets()[b].submit_to_read(
          [&promise = over[b]](std::exception_ptr error) { promise.set_value(error); });
    schedule.hand_over();
    for (auto& promise : over) EXPECT_EQ(promise.get_future().get(), nullptr);
    schedule.end();
  }
}

TEST(MpiSchedule, ReducesInTheOrderOfTheBuckets) {
  Schedule schedule(five_buckets());
  schedule.compare();
  run_step(schedule, {4, 3, 2, 1, 0});
  const auto timings = schedule.last_step_timings();
  for (int b = 1; b < kGradients; ++b) EXPECT_GE(timings[b].start, timings[b - 1].end);
}

TEST(MpiSchedule, CarriesItsFlagsInSixteenBits) {
  Schedule schedule(five_buckets(DType::bf16));
  schedule.compare();
  if (rank() == size() - 1) schedule.cast(StepFlag::stop);
  schedule.begin();
  std::vector<std::promise<void>> over(schedule.buckets().size());
  for (std::size_t b = 0; b < over.size(); ++b)
    schedule.buckets()[b].submit([&over, b](std::exception_ptr) { over[b].set_value(); });
  for (auto& bucket : over) bucket.get_future().wait();
  EXPECT_TRUE(schedule.take_outcome().has(StepFlag::stop));
}

TEST(MpiSchedule, TellsAllRanksOfAStopAfterTheSameStep) {
  Schedule schedule(five_buckets());
  schedule.compare();
  for (int step = 0; step < 4; ++step) {
    if (step == 2 && rank() == size() - 1) schedule.cast(StepFlag::stop);
    EXPECT_THAT(run_step(schedule), Each(nullptr));
    EXPECT_EQ(schedule.take_outcome().has(StepFlag::stop), step == 2) << "step " << step;
  }
}

TEST(MpiSchedule, EndOfDataOnOneRankVoidsTheStepOnAll) {
  Schedule schedule(five_buckets());
  schedule.compare();
  EXPECT_THAT(run_step(schedule), Each(nullptr));
  if (rank() == size() - 1) {
    schedule.leave(StepFlag::end_of_data, "");
  } else {
    for (const auto& error : run_step(schedule, {3, 1, 0, 2, 4}))
      EXPECT_THAT(
          [&] { std::rethrow_exception(error); },
          ThrowsMessage<OutOfRangeError>(HasSubstr("end of data on rank " + std::to_string(size() - 1))));
  }
  EXPECT_TRUE(schedule.take_outcome().has(StepFlag::end_of_data));
  schedule.leave(StepFlag::failed, "what a session says of every error; this one all ranks know");
  EXPECT_THAT(run_step(schedule), Each(nullptr)) << "a later epoch goes on";
  EXPECT_FALSE(schedule.take_outcome().has(StepFlag::end_of_data));
}

TEST(MpiSchedule, TellsAllRanksWhyOneFailedInTheMiddleOfAStep) {
  if (size() == 1) GTEST_SKIP() << "one rank has nobody to tell";
  Schedule schedule(five_buckets());
  schedule.compare();
  schedule.set_step(17);
  if (rank() == size() - 1) {
    schedule.begin();
    for (const int bucket : {0, 1}) schedule.buckets()[bucket].submit([](std::exception_ptr) {});
    schedule.leave(StepFlag::failed, "division by zebra");
  } else {
    const auto results = run_step(schedule);
    const auto text = "rank " + std::to_string(size() - 1) + " failed in step 17: division by zebra";
    EXPECT_THAT([&] { std::rethrow_exception(results.back()); },
                ThrowsMessage<AbortedError>(HasSubstr(text)));
  }
  EXPECT_THROW(schedule.begin(), AbortedError);
}

TEST(MpiSchedule, TellsAllRanksInTheNextStepOfAFailureBetweenSteps) {
  if (size() == 1) GTEST_SKIP() << "one rank has nobody to tell";
  Schedule schedule(five_buckets());
  schedule.compare();
  run_step(schedule);
  if (rank() == 0) {
    schedule.leave(StepFlag::failed, "no more disk");
  } else {
    for (const auto& error : run_step(schedule))
      EXPECT_THAT([&] { std::rethrow_exception(error); },
                  ThrowsMessage<AbortedError>(HasSubstr("rank 0 failed in step 2: no more disk")));
  }
}

TEST(MpiSchedule, EndOfDataInsideAStepVoidsItAsLongAsNothingHasLeft) {
  if (size() == 1) GTEST_SKIP() << "one rank has nobody to tell";
  Schedule schedule(five_buckets());
  schedule.compare();
  std::exception_ptr waiting;
  if (rank() == 0) {
    schedule.begin();
    schedule.buckets()[3].submit(
        [&](std::exception_ptr error) { waiting = std::move(error); });  // behind 0, 1, 2
    schedule.leave(StepFlag::end_of_data, "no more files");
    EXPECT_TRUE(schedule.take_outcome().has(StepFlag::end_of_data));
    schedule.begin();  // when it returns, all of the step before is over
    for (int bucket = 0; bucket < 5; ++bucket) schedule.buckets()[bucket].submit([](std::exception_ptr) {});
    EXPECT_THROW(std::rethrow_exception(waiting), OutOfRangeError);
  } else {
    for (const auto& error : run_step(schedule)) EXPECT_THROW(std::rethrow_exception(error), OutOfRangeError);
    EXPECT_TRUE(schedule.take_outcome().has(StepFlag::end_of_data));
    EXPECT_THAT(run_step(schedule), Each(nullptr));
  }
}

TEST(MpiSchedule, EndOfDataInsideAStepIsAFailureOnceABucketHasLeft) {
  if (size() == 1) GTEST_SKIP() << "one rank has nobody to tell";
  Schedule schedule(five_buckets());
  schedule.compare();
  if (rank() == 0) {
    schedule.begin();
    schedule.buckets()[0].submit([](std::exception_ptr) {});
    schedule.leave(StepFlag::end_of_data, "no more files");
  } else {
    const auto results = run_step(schedule);
    EXPECT_THAT([&] { std::rethrow_exception(results.back()); },
                ThrowsMessage<AbortedError>(HasSubstr("rank 0 failed in step 1: no more files")));
  }
}

TEST(MpiSchedule, TwoRunAtTheSameTimeInDifferentOrder) {
  Schedule a(five_buckets()), b(five_buckets());
  a.compare();
  b.compare();
  const auto ten_steps = [](Schedule& schedule) {
    for (int step = 0; step < 10; ++step) EXPECT_THAT(run_step(schedule), Each(nullptr));
  };
  std::thread other([&] { ten_steps(rank() % 2 == 0 ? a : b); });
  ten_steps(rank() % 2 == 0 ? b : a);
  other.join();
}

// Rank r gives r rows of a table, r + 10 in all elements; nothing else is reduced.
TEST(MpiSchedule, GathersRowsAndVoidsThemAsItDoesBuckets) {
  if (size() == 1) GTEST_SKIP() << "one rank gathers nothing";
  Schedule schedule({.name = "rows", .reduction = ReduceOp::sum, .gathers = {{"table", {1000, 2}}}});
  schedule.compare();
  const auto step = [&] {
    Tensor values(DType::f32, {rank(), 2}), indices(DType::i32, {rank()});
    for (float& value : values.span<float>()) value = static_cast<float>(rank() + 10);
    for (int& index : indices.span<std::int32_t>()) index = rank();
    schedule.begin();
    std::promise<std::exception_ptr> over;
    schedule.rows()[0].submit(values, indices, [&](std::exception_ptr error) { over.set_value(error); });
    const auto error = over.get_future().get();
    schedule.end();
    return error;
  };
  EXPECT_EQ(step(), nullptr);
  const Tensor &values = schedule.rows()[0].values(), &indices = schedule.rows()[0].indices();
  ASSERT_EQ(values.shape(), (Shape{size() * (size() - 1) / 2, 2}));
  std::int64_t row = 0;
  for (int r = 0; r < size(); ++r)
    for (int i = 0; i < r; ++i, ++row) {
      EXPECT_EQ(indices.data<std::int32_t>()[row], r);
      EXPECT_EQ(values.data<float>()[2 * row + 1], static_cast<float>(r + 10));
    }
  if (rank() == 0) {
    schedule.leave(StepFlag::end_of_data, "");
  } else {
    const auto error = step();
    EXPECT_THROW(std::rethrow_exception(error), OutOfRangeError);
  }
  EXPECT_TRUE(schedule.take_outcome().has(StepFlag::end_of_data));
  EXPECT_EQ(step(), nullptr) << "a later epoch goes on";
  if (rank() == size() - 1) schedule.cast(StepFlag::stop);
  EXPECT_EQ(step(), nullptr);
  EXPECT_TRUE(schedule.take_outcome().has(StepFlag::stop));
}

TEST(MpiSchedule, SaysOnEveryRankWhichGradientDiffers) {
  if (size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  auto spec = five_buckets();
  if (rank() == 1) spec.gradients[3].shape = Shape{7};
  Schedule schedule(spec);
  EXPECT_THAT([&] { schedule.compare(); }, ThrowsMessage<FailedPreconditionError>(
                                               HasSubstr("Ranks disagree on the training step: gradient 3 is "
                                                         "\"g3\" [67] on rank 0 but \"g3\" [7] on rank 1")));
}

TEST(MpiSchedule, SaysOnEveryRankThatOneHasNoGradients) {
  if (size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  Schedule schedule(rank() == size() - 1 ? ScheduleSpec{.name = "none", .limits = five_buckets().limits}
                                         : five_buckets());
  EXPECT_THAT(
      [&] { schedule.compare(); },
      ThrowsMessage<FailedPreconditionError>(AllOf(
          HasSubstr("Ranks disagree on the training step: gradient 0 is \"g0\" [64] on rank 0 but missing"),
          HasSubstr("on rank " + std::to_string(size() - 1)))));
}

}  // namespace
}  // namespace kolo
