// Whose memory eager operations use, and until when.
#include <kolo/collectives/engine/eager.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>

namespace kolo {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::ThrowsMessage;

// What was given back is overwritten at once, and stays readable.
class OverwritesFreed final : public Allocator {
 public:
  ~OverwritesFreed() override {
    for (const auto& [block, bytes] : freed_) cpu_allocator().deallocate(block, bytes);
  }
  std::string name() const override { return "overwrites freed"; }
  void* allocate(std::size_t bytes) override {
    ++live_;
    return cpu_allocator().allocate(bytes);
  }
  void deallocate(void* block, std::size_t bytes) noexcept override {
    std::memset(block, 0x7f, bytes);
    MutexLock lock(mutex_);
    freed_.emplace_back(block, bytes);
    --live_;
  }
  int live() const { return live_; }

 private:
  std::atomic<int> live_{0};
  Mutex mutex_;
  std::vector<std::pair<void*, std::size_t>> freed_ KOLO_GUARDED_BY(mutex_);
};

// The calls are given the only tensor that holds its memory.
class TemporaryTensor : public testing::Test {
 protected:
  Tensor rows(std::int64_t count, float first) {
    Tensor tensor(DType::f32, Shape{count}, memory_);
    std::iota(tensor.span<float>().begin(), tensor.span<float>().end(), first);
    return tensor;
  }
  OverwritesFreed memory_;
};

TEST_F(TemporaryTensor, LivesUntilItIsGathered) {
  const auto all = allgather_async(rows(1, static_cast<float>(rank())));
  std::vector<float> expected(size());
  std::iota(expected.begin(), expected.end(), 0.0f);
  EXPECT_THAT(all.wait().span<float>(), ElementsAreArray(expected));
}

TEST_F(TemporaryTensor, LivesUntilItsRowsAreExchanged) {
  const auto received = alltoall_async(rows(size(), 0));
  EXPECT_THAT(received.wait().tensor.span<float>(), Each(static_cast<float>(rank())));
}

TEST_F(TemporaryTensor, LivesUntilTheRootHasIt) {
  const auto all = gather_async(rows(1, static_cast<float>(rank())), 0);
  std::vector<float> expected(rank() == 0 ? size() : 0);
  std::iota(expected.begin(), expected.end(), 0.0f);
  EXPECT_THAT(all.wait().span<float>(), ElementsAreArray(expected));
}

// Its allocator may be gone then.
TEST_F(TemporaryTensor, IsGivenBackBeforeTheCallReturns) {
  for (int call = 0; call < 200; ++call) {
    const auto all = allgather_async(rows(3, 1));
    all.wait();
    ASSERT_EQ(memory_.live(), 0) << "call " << call;
  }
}

TEST_F(TemporaryTensor, LivesUntilItIsScattered) {
  const auto own = scatter_async(rows(rank() == 0 ? size() : 0, 0), 0);
  EXPECT_THAT(own.wait().span<float>(), Each(static_cast<float>(rank())));
}

// Nor does the engine hold on to a result.
TEST(Result, BelongsToTheCallerAlone) {
  OverwritesFreed memory;
  for (int call = 0; call < 200; ++call) {
    allgather(Tensor::zeros(DType::f32, {3}), {.allocator = &memory});
    ASSERT_EQ(memory.live(), 0) << "call " << call;
  }
}

TEST(Result, OfAReduceScatterComesFromTheAllocatorThatIsGiven) {
  OverwritesFreed memory;
  const std::vector<Tensor> group(2, Tensor::zeros(DType::f32, {2 * size(), 3}));
  {
    const Tensor own = reduce_scatter(group[0], ReduceOp::sum, {.allocator = &memory});
    EXPECT_EQ(own.shape(), Shape({2, 3}));
    EXPECT_EQ(memory.live(), 1);
    const auto several = grouped_reduce_scatter(group, ReduceOp::sum, {.allocator = &memory});
    EXPECT_EQ(memory.live(), 3);
  }
  EXPECT_EQ(memory.live(), 0);
}

// Has memory for nothing but inputs.
class NoMemory final : public Allocator {
 public:
  std::string name() const override { return "none"; }
  void* allocate(std::size_t bytes) override {
    throw ResourceExhaustedError("no memory for {} bytes", bytes);
  }
  void deallocate(void*, std::size_t) noexcept override {}
};

// Rank 1 has no memory for its result, of few rows or of many.
class RankWithoutMemory : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (size() == 1) GTEST_SKIP() << "nobody to tell";
  }
  EagerOptions options() {
    EagerOptions options;
    if (rank() == 1) options.allocator = &none_;
    return options;
  }
  static Tensor rows(std::int64_t count) { return Tensor::zeros(DType::f32, {count}); }
  static std::int64_t own_rows() { return GetParam(); }
  // All ranks hear of it from this call, and the next one succeeds.
  template <typename Result>
  void expect_told(const Handle<Result>& handle, std::int64_t missing_rows) {
    ASSERT_TRUE(handle.wait_for(20s)) << handle.name();
    EXPECT_THAT([&] { handle.wait(); },
                ThrowsMessage<ResourceExhaustedError>(
                    AllOf(HasSubstr(handle.name()),
                          HasSubstr(fmt::format("rank 1 cannot allocate {} bytes", 4 * missing_rows)))));
    EXPECT_EQ(allgather(rows(1)).elements(), size());
  }

 private:
  NoMemory none_;
};
INSTANTIATE_TEST_SUITE_P(Eager, RankWithoutMemory, testing::Values(1, 30'000, 500'000));

TEST_P(RankWithoutMemory, IsToldToAllInAnAllgather) {
  expect_told(allgather_async(rows(own_rows()), options()), own_rows() * size());
}

TEST_P(RankWithoutMemory, IsToldToAllInAGroupedAllgather) {
  const std::vector<Tensor> group = {rows(own_rows()), rows(1)};
  expect_told(grouped_allgather_async(group, options()), own_rows() * size());
}

TEST_P(RankWithoutMemory, IsToldToAllInAnAlltoall) {
  expect_told(alltoall_async(rows(own_rows() * size()), {}, options()), own_rows() * size());
}

TEST_P(RankWithoutMemory, IsToldToAllInAGather) {
  expect_told(gather_async(rows(own_rows()), 1, options()), own_rows() * size());
}

TEST_P(RankWithoutMemory, IsToldToAllInAScatter) {
  expect_told(scatter_async(rows(own_rows() * size()), 0, options()), own_rows());
}

TEST_P(RankWithoutMemory, IsToldToAllInABroadcastOfAnObject) {
  const std::string bytes(4 * own_rows(), '!');
  expect_told(broadcast_object_async(bytes, 0, options()), own_rows());
}

// How much it is to get is known at the call.
TEST_P(RankWithoutMemory, RefusesAReduceScatter) {
  const auto call = [&] {
    EagerOptions named = options();
    named.name = "refused";
    reduce_scatter(rows(own_rows()), ReduceOp::sum, named);
  };
  if (rank() == 1) EXPECT_THAT(call, ThrowsMessage<ResourceExhaustedError>(HasSubstr("no memory for")));
  else
    EXPECT_THAT(call, ThrowsMessage<FailedPreconditionError>(HasSubstr("rank 1 refused refused: no memory")));
  EXPECT_EQ(allgather(rows(1)).elements(), size());
}

TEST_P(RankWithoutMemory, IsNamedByItsNumberInTheJob) {
  std::vector<int> backwards(size());
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  EagerOptions in_set = options();
  in_set.process_set = ProcessSet::create(backwards);
  expect_told(allgather_async(rows(own_rows()), in_set), own_rows() * size());
}

// The rows have no elements, so nobody needs memory for them; but their number does not exist.
TEST(RowsWithoutElements, MayNotBeMoreThanCanBeCounted) {
  if (size() == 1) GTEST_SKIP() << "one rank's rows can be counted";
  const Tensor rows = Tensor::zeros(DType::u8, {std::int64_t{1} << 62, 0});
  EXPECT_THAT([&] { allgather(rows); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("more than can be counted")));
  EXPECT_EQ(allgather(Tensor::zeros(DType::f32, {2, 0})).shape(), Shape({2 * size(), 0}));
}

}  // namespace
}  // namespace kolo
