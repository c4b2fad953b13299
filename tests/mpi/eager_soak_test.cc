// Many steps of everything at once: random sizes, process sets, names in random order, a rank that is late.
// SOAK_STEPS=10000 scripts/mpirun_test 4 build/release/tests/mpi.eager_soak_test runs the long form.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/job/init.h>
#include <kolo/core/base/text.h>

namespace kolo {
namespace {

std::int64_t variable(const char* name, std::int64_t fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr ? fallback : parse_int64(text).value();
}

std::int64_t resident_mib() {
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE) >> 20;
}

class Soak {
 public:
  void step(int number) {
    // The same on all ranks: what is called. Different: in which order, and when.
    std::mt19937 shared(number), own(1000 * number + rank());
    if (number % 50 == rank()) std::this_thread::sleep_for(std::chrono::milliseconds(own() % 5));
    std::vector<int> order(kTensors);
    for (int i = 0; i < kTensors; ++i) {
      order[i] = i;
      // Most sizes stay for a while, so that the cache is hit and missed.
      const auto elements = std::mt19937(number / 20 * kTensors + i)() % 3000;
      values_[i].assign(elements, static_cast<float>(rank() + i));
    }
    std::shuffle(order.begin(), order.end(), own);
    std::vector<Handle<void>> handles;
    for (const int i : order)
      handles.push_back(allreduce_async(std::span(values_[i]), ReduceOp::sum, {.name = names_[i]}));
    std::vector<double> in_half(shared() % 100, rank());
    handles.push_back(
        allreduce_async(std::span(in_half), ReduceOp::max, {.name = "half", .process_set = half_}));
    const std::vector<std::int64_t> rows(shared() % 4 + rank(), rank());
    const auto gathered = allgather(std::span(rows));
    for (const auto& handle : handles) handle.wait();
    const int n = size();
    for (int i = 0; i < kTensors; ++i)
      for (const float value : values_[i])
        ASSERT_EQ(value, static_cast<float>(n * (n - 1) / 2 + n * i))
            << "step " << number << ", tensor " << i;
    for (const double value : in_half) ASSERT_EQ(value, half_.ranks().back());
    ASSERT_TRUE(std::is_sorted(gathered.begin(), gathered.end()));
  }

 private:
  static constexpr int kTensors = 20;
  static std::vector<std::string> names() {
    std::vector<std::string> all;
    for (int i = 0; i < kTensors; ++i) all.push_back(fmt::format("soak.{}", i));
    return all;
  }
  const std::vector<std::string> names_ = names();
  const ProcessSet half_ = ProcessSet::split(rank() % 2, rank());
  std::vector<std::vector<float>> values_ = std::vector<std::vector<float>>(kTensors);
};

TEST(EagerSoak, IsRightInEveryStepAndKeepsItsMemory) {
  const auto steps = variable("SOAK_STEPS", 20);
  Soak soak;
  std::int64_t after_warm_up = 0;
  for (int step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
    soak.step(step);
    if (step == steps / 5) after_warm_up = resident_mib();
  }
  EXPECT_LT(resident_mib(), after_warm_up + 8) << "MiB after " << steps << " steps";
  if (rank() == 0)
    fmt::print("{} steps; resident after a fifth of them {} MiB, at the end {} MiB\n", steps, after_warm_up,
               resident_mib());
}

// Row 45 of the collectives' worked examples, in the long form only: it takes 2 GiB a rank.
TEST(EagerSoak, ReducesMoreThanTwoGibibytesInPlace) {
  if (variable("SOAK_HUGE", 0) == 0) GTEST_SKIP() << "SOAK_HUGE=1 runs it, on 4 ranks with 16 GiB of memory";
  if (sysconf(_SC_PHYS_PAGES) / 1024 * sysconf(_SC_PAGESIZE) < std::int64_t{16} << 20)
    GTEST_SKIP() << "needs 16 GiB of memory";
  std::vector<std::uint8_t> values((std::size_t{1} << 31) + 8, static_cast<std::uint8_t>(rank()));
  values.front() = values.back() = static_cast<std::uint8_t>(100 + rank());
  allreduce(std::span(values), ReduceOp::max, {.name = "huge"});
  EXPECT_EQ(values.front(), 100 + size() - 1);
  EXPECT_EQ(values[1], size() - 1);
  EXPECT_EQ(values[values.size() - 2], size() - 1);
  EXPECT_EQ(values.back(), 100 + size() - 1);
}

}  // namespace
}  // namespace kolo
