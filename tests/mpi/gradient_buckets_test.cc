#include <kolo/collectives/schedule/gradient_buckets.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr GradientBucketsOptions kSmallBuckets = {.first_bucket_bytes = 256, .bucket_bytes = 512};

float sum_over_ranks(float of_rank_0) {
  float sum = 0;
  for (int r = 0; r < size(); ++r) sum += of_rank_0 + static_cast<float>(r);
  return sum;
}
float average_over_ranks(float of_rank_0) { return sum_over_ranks(of_rank_0) / static_cast<float>(size()); }

// Gradients of the caller: gradient i has 10 + i elements.
struct Gradients {
  explicit Gradients(int count) {
    for (int i = 0; i < count; ++i) values.emplace_back(10 + i);
    for (int i = 0; i < count; ++i)
      list.push_back(
          {"g" + std::to_string(i), values[i].data(), static_cast<std::int64_t>(values[i].size())});
  }
  void write(int i, float value) { std::fill(values[i].begin(), values[i].end(), value); }

  std::vector<std::vector<float>> values;
  std::vector<NamedBuffer> list;
};

std::string last_rank() { return fmt::format("rank {}", size() - 1); }
bool is_last() { return rank() == size() - 1; }

TEST(MpiGradientBuckets, AverageTheCallersGradientsInAnyOrderOfTheRanks) {
  Gradients gradients(12);
  GradientBuckets buckets(gradients.list, kSmallBuckets);
  EXPECT_GT(buckets.buckets(), 2);
  for (int step = 0; step < 20; ++step) {
    for (int k = 0; k < 12; ++k) {
      const int i = (k * (rank() % 2 == 0 ? 1 : 5) + step + rank()) % 12;
      gradients.write(i, static_cast<float>(100 * step + i + rank()));
      buckets.ready(i);
    }
    buckets.wait();
    for (int i = 0; i < 12; ++i)
      EXPECT_THAT(gradients.values[i], Each(average_over_ranks(static_cast<float>(100 * step + i))));
  }
}

TEST(MpiGradientBuckets, TakeGradientsFromSeveralThreads) {
  Gradients gradients(40);
  GradientBuckets buckets(gradients.list, kSmallBuckets);
  for (int step = 0; step < 20; ++step) {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = t; i < 40; i += 4) {
          gradients.write(i, static_cast<float>(i + rank()));
          buckets.ready(i);
        }
      });
    threads.clear();
    buckets.wait();
    for (int i = 0; i < 40; ++i)
      EXPECT_THAT(gradients.values[i], Each(average_over_ranks(static_cast<float>(i))));
  }
}

TEST(MpiGradientBuckets, WaitInAnotherThreadThanReady) {
  Gradients gradients(2);
  GradientBuckets buckets(gradients.list);
  for (const int i : {0, 1}) {
    gradients.write(i, static_cast<float>(rank()));
    buckets.ready(i);
  }
  std::jthread([&] { buckets.wait(); }).join();
  EXPECT_THAT(gradients.values[0], Each(average_over_ranks(0)));
}

TEST(MpiGradientBuckets, ReduceGradientsThatLiveInsideWhereTheyAre) {
  GradientBuckets buckets({{"a", nullptr, 100}, {"b", nullptr, 3, DType::f64}, {"c", nullptr, 0}});
  const std::span<float> a(static_cast<float*>(buckets.memory(0)), 100);
  const std::span<double> b(static_cast<double*>(buckets.memory(1)), 3);
  for (int step = 0; step < 3; ++step) {
    std::fill(a.begin(), a.end(), static_cast<float>(rank() + step));
    std::fill(b.begin(), b.end(), rank() - step);
    for (const int i : {2, 1, 0}) buckets.ready(i);
    buckets.wait();
    EXPECT_THAT(a, Each(average_over_ranks(static_cast<float>(step))));
    EXPECT_THAT(b, Each(static_cast<double>(average_over_ranks(static_cast<float>(-step)))));
  }
}

TEST(MpiGradientBuckets, AddWhereAskedTo) {
  Gradients gradients(1);
  GradientBuckets buckets(gradients.list, {.op = ReduceOp::sum});
  gradients.write(0, static_cast<float>(rank() + 3));
  buckets.ready(0);
  buckets.wait();
  EXPECT_THAT(gradients.values[0], Each(sum_over_ranks(3)));
}

TEST(MpiGradientBuckets, BringAGradientBackToWhereItWasInThisStep) {
  Gradients gradients(1);
  GradientBuckets buckets(gradients.list);
  std::vector<float> elsewhere(10, static_cast<float>(rank()));
  buckets.ready(0, elsewhere.data());
  buckets.wait();
  EXPECT_THAT(elsewhere, Each(average_over_ranks(0)));
  EXPECT_THAT(gradients.values[0], Each(0.0f)) << "the listed memory is left alone";
}

TEST(MpiGradientBuckets, AbsentGradientContributesZeros) {
  if (size() == 1) GTEST_SKIP() << "no other rank contributes";
  Gradients gradients(1);
  GradientBuckets buckets(gradients.list);
  gradients.write(0, 6);
  if (is_last()) buckets.absent(0);
  else buckets.ready(0);
  buckets.wait();
  EXPECT_THAT(gradients.values[0], Each(6.0f * static_cast<float>(size() - 1) / static_cast<float>(size())));
}

TEST(MpiGradientBuckets, TellAllRanksWhatIsNotReadyOnOne) {
  if (size() == 1) GTEST_SKIP() << "one rank has nobody to tell";
  Gradients gradients(12);
  GradientBuckets buckets(gradients.list, kSmallBuckets);
  for (int i = 0; i < 12; ++i)
    if (!is_last() || (i != 4 && i != 9)) buckets.ready(i);
  const auto missing = HasSubstr("2 of 12 gradients are not ready: \"g4\", \"g9\"");
  if (is_last()) {
    EXPECT_THAT([&] { buckets.wait(); }, ThrowsMessage<FailedPreconditionError>(missing));
    EXPECT_THAT([&] { buckets.wait(); }, ThrowsMessage<FailedPreconditionError>(missing)) << "for good";
  } else {
    EXPECT_THAT([&] { buckets.wait(); }, ThrowsMessage<AbortedError>(AllOf(
                                             HasSubstr(last_rank() + " failed in step 1: wait()"), missing)));
    buckets.ready(0);
    EXPECT_THROW(buckets.wait(), AbortedError) << "for good";
  }
}

TEST(MpiGradientBuckets, WaitUntilADeadlineForTheOtherRanks) {
  const auto within = [](int milliseconds) {
    return std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  };
  Gradients gradients(2);
  GradientBuckets buckets(gradients.list);
  EXPECT_TRUE(buckets.wait_until(within(0))) << "wait() would throw at once";
  barrier();
  if (rank() == 0 && size() > 1) {
    buckets.ready(0);
    buckets.ready(1);
    EXPECT_FALSE(buckets.wait_until(within(20))) << "the others are behind the barrier";
  }
  barrier();
  if (rank() > 0 || size() == 1) {
    buckets.ready(0);
    buckets.ready(1);
  }
  EXPECT_TRUE(buckets.wait_until(within(60'000)));
  buckets.wait();
}

TEST(MpiGradientBuckets, NameWhatIsNotReadyOnEveryRankThatLacksIt) {
  Gradients gradients(3);
  GradientBuckets buckets(gradients.list);
  buckets.ready(1);
  EXPECT_THAT([&] { buckets.wait(); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("not ready: \"g0\", \"g2\"")));
}

TEST(MpiGradientBuckets, TellTheOthersOfARankThatLeavesInTheMiddleOfAStep) {
  if (size() == 1) GTEST_SKIP() << "one rank has nobody to tell";
  Gradients gradients(12);
  std::optional<GradientBuckets> buckets(std::in_place, gradients.list, kSmallBuckets);
  for (int i = 0; i < (is_last() ? 7 : 12); ++i) buckets->ready(i);
  if (is_last()) buckets.reset();
  else
    EXPECT_THAT([&] { buckets->wait(); },
                ThrowsMessage<AbortedError>(HasSubstr(last_rank() + " failed in step 1")));
}

TEST(MpiGradientBuckets, EndOfDataOnOneRankVoidsTheStepOnAll) {
  Gradients gradients(12);
  GradientBuckets buckets(gradients.list, kSmallBuckets);
  const auto step = [&] {
    for (int i = 0; i < 12; ++i) {
      gradients.write(i, static_cast<float>(rank()));
      buckets.ready(i);
    }
    buckets.wait();
  };
  step();
  if (is_last()) buckets.end_of_data();
  else EXPECT_THAT(step, ThrowsMessage<OutOfRangeError>(HasSubstr("end of data on " + last_rank())));
  step();
  EXPECT_THAT(gradients.values[3], Each(average_over_ranks(0))) << "a later epoch goes on";
}

TEST(MpiGradientBuckets, SayOnEveryRankWhichGradientDiffers) {
  if (size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  Gradients gradients(3);
  if (is_last()) gradients.list[2].count = 7;
  EXPECT_THAT([&] { GradientBuckets buckets(gradients.list); },
              ThrowsMessage<FailedPreconditionError>(
                  HasSubstr("Ranks disagree on the training step: gradient 0 is \"g2\" [12] on rank 0 but "
                            "\"g2\" [7] on " +
                            last_rank())));
}

TEST(MpiBroadcastParameters, OverwritesWithTheRootsElements) {
  std::vector<float> a(5, static_cast<float>(rank()));
  std::vector<std::int64_t> b = {rank() + 7};
  const int root = size() - 1;
  broadcast_parameters(std::vector<NamedBuffer>{{"a", a.data(), 5}, {"b", b.data(), 1, DType::i64}}, root);
  EXPECT_THAT(a, Each(static_cast<float>(root)));
  EXPECT_THAT(b, ElementsAre(root + 7));
}

TEST(MpiBroadcastParameters, SaysOnEveryRankWhichParameterDiffers) {
  if (size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  std::vector<float> a(5);
  const std::vector<NamedBuffer> list = {{"a", a.data(), is_last() ? 4 : 5}};
  EXPECT_THAT([&] { broadcast_parameters(list); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr(
                  "Ranks disagree on the parameters: parameter 0 is \"a\" [5] on rank 0 but \"a\" [4] on")));
}

}  // namespace
}  // namespace kolo
