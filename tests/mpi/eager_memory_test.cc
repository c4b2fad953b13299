// Whose memory eager operations use, and until when.
#include <kolo/collectives/engine/eager.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/mutex.h>

namespace kolo {
namespace {

using testing::Each;
using testing::ElementsAreArray;

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

}  // namespace
}  // namespace kolo
