// Ranks of one node that see each other's memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/collectives/job/runtime.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/runtime/group.h>

namespace kolo {
namespace {

using testing::Each;

class SharedMemory : public testing::Test {
 protected:
  void SetUp() override {
    runtime_ = detail::current_runtime();
    if (size() == 1) GTEST_SKIP() << "one rank shares nothing";
    ASSERT_NE(&bucket_allocator(), &cpu_allocator());
    channel_ = runtime_->thread().open_channel();
  }
  void TearDown() override { runtime_.reset(); }
  void allreduce(const TypedBuffer& buffer, ReduceOp op) {
    runtime_->thread().run(channel_, runtime_->world().allreduce(buffer, op), "the test");
  }
  std::shared_ptr<detail::Runtime> runtime_;
  int channel_ = 0;
};

// All combinations of node memory and ordinary memory, of lengths and types.
class EqualBits {
 public:
  explicit EqualBits(std::function<void(const TypedBuffer&, ReduceOp)> allreduce)
      : allreduce_(std::move(allreduce)) {}

  template <typename T>
  void reduce(std::initializer_list<ReduceOp> ops) {
    for (const std::size_t count : {0, 37, 50003})
      for (int mixture = 0; mixture < 3; ++mixture)
        for (const ReduceOp op : ops) reduce<T>(count, mixture, op);
  }
  // Of all that was reduced, in order.
  const std::string& results() const { return results_; }

 private:
  template <typename T>
  void reduce(std::size_t count, int mixture, ReduceOp op) {
    const bool in_node = mixture == 0 || (mixture == 1 && rank() % 2 == 0);
    const Buffer memory(in_node ? bucket_allocator() : cpu_allocator(), count * sizeof(T));
    const std::span<T> values(reinterpret_cast<T*>(memory.data()), count);
    std::mt19937 random(rank() + 1);
    for (auto& value : values) value = static_cast<T>(static_cast<float>(random() % 2000) / 16 - 30);
    allreduce_(TypedBuffer::of(values), op);
    const std::string_view bits(reinterpret_cast<const char*>(memory.data()), memory.bytes());
    results_ += fmt::format("{} {} of {} elements, mixture {}: {}\n", name(op), numpy_name(dtype_of<T>()),
                            count, mixture, std::hash<std::string_view>()(bits));
  }

  std::function<void(const TypedBuffer&, ReduceOp)> allreduce_;
  std::string results_;
};

TEST_F(SharedMemory, AllRanksHoldTheSameBits) {
  EqualBits checked([this](const TypedBuffer& buffer, ReduceOp op) { allreduce(buffer, op); });
  checked.reduce<float>({ReduceOp::sum, ReduceOp::average, ReduceOp::min, ReduceOp::max, ReduceOp::product});
  checked.reduce<Half>({ReduceOp::sum, ReduceOp::average});
  checked.reduce<BFloat16>({ReduceOp::sum, ReduceOp::product});
  checked.reduce<double>({ReduceOp::sum, ReduceOp::average});
  checked.reduce<std::int32_t>({ReduceOp::sum, ReduceOp::max});
  EXPECT_THAT(world_group().allgather(checked.results()), Each(checked.results()));
}

// Row 7.
TEST_F(SharedMemory, HalvesAreRoundedOnce) {
  std::vector<Half> values(10, Half(rank() == 0 ? 2048.0f : rank() <= 2 ? 1.0f : 0.0f));
  allreduce(TypedBuffer::of(std::span<Half>(values)), ReduceOp::sum);
  EXPECT_THAT(values, Each(Half(size() == 2 ? 2048.0f : 2050.0f)));
}

TEST_F(SharedMemory, BucketsOfAScheduleLieInIt) {
  const Schedule schedule({.name = "x", .gradients = {{"g", Shape{1000}, DType::f32}}});
  const auto& memory = *schedule.buckets()[0].memory();
  const auto& own = static_cast<NodeMemory&>(bucket_allocator());
  EXPECT_TRUE(own.offset_of(memory.data(), static_cast<std::int64_t>(memory.bytes())));
}

// A rank that comes late finds the others asleep in the communication thread's hands.
TEST_F(SharedMemory, LateRankIsWaitedFor) {
  std::vector<float> values(100000, 1.0f);
  if (rank() == 0) usleep(50000);
  allreduce(TypedBuffer::of(std::span<float>(values)), ReduceOp::sum);
  EXPECT_THAT(values[99999], static_cast<float>(size()));
}

// Row 45: more than 2^31 elements.
TEST_F(SharedMemory, MaximumOfMoreThanTwoGigabytesInPlace) {
  const auto bytes = (std::int64_t{1} << 31) + 8;
  const auto machine = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  const auto free = std::int64_t{sysconf(_SC_AVPHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if (size() != 4) GTEST_SKIP() << "an example of four ranks";
#ifdef KOLO_THREAD_SANITIZER
  const std::int64_t shadow = 5;  // what TSan writes down of each byte, and the byte
#else
  const std::int64_t shadow = 1;
#endif
  const bool fits = machine >= (shadow * 16) << 30 && free >= (shadow * 10) << 30;
  if (world_group().broadcast(fits ? "yes" : "no", 0) == "no")
    GTEST_SKIP() << "needs a machine with " << shadow * 16 << " GiB of memory, " << shadow * 10
                 << " GiB of it free";
  const Buffer memory(bucket_allocator(), static_cast<std::size_t>(bytes));
  auto* const values = reinterpret_cast<std::uint8_t*>(memory.data());
  // Node memory that nobody has written is zero.
  values[0] = values[bytes - 1] = static_cast<std::uint8_t>(rank() + 250);
  values[bytes / 2] = static_cast<std::uint8_t>(rank());
  allreduce({memory.data(), bytes, DType::u8}, ReduceOp::max);
  EXPECT_EQ(values[0], 253);
  EXPECT_EQ(values[bytes / 2], 3);
  EXPECT_EQ(values[bytes - 1], 253);
}

}  // namespace
}  // namespace kolo
