// While the settings of an engine change every result is right, and all ranks change over at once.
#include <kolo/collectives/engine/eager.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <utility>

#include <kolo/collectives/job/init.h>
#include <kolo/collectives/job/runtime.h>

namespace kolo {
namespace {

using testing::Each;

constexpr int kTensors = 30;

void train_a_step(std::mt19937& random) {
  std::vector<std::vector<float>> values(kTensors, std::vector<float>(100));
  std::vector<int> order(kTensors);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<Handle<void>> handles;
  for (const int i : order) {
    std::fill(values[i].begin(), values[i].end(), static_cast<float>(i + rank()));
    handles.push_back(
        allreduce_async(std::span(values[i]), ReduceOp::sum, {.name = fmt::format("gradient{}", i)}));
  }
  for (const auto& handle : handles) handle.wait();
  for (int i = 0; i < kTensors; ++i)
    ASSERT_THAT(values[i], Each(static_cast<float>(size() * i + size() * (size() - 1) / 2)));
}

// As kolo-bench does.
void change_settings(int change) {
  const auto runtime = detail::current_runtime();
  if (rank() == 0)
    runtime->thread().call([&] {
      runtime->engine().set(0)->tune({.fusion_bytes = change % 2 == 0 ? 1024 : 1 << 20, .cycle_ms = 0.5});
    });
}

// A change may come between two numbers of one reading.
std::vector<double> settings() {
  std::vector<double> last, now;
  do {
    last = std::exchange(now, {});
    const auto engine = engine_statistics();
    now = {static_cast<double>(engine.fusion_bytes), engine.cycle_ms, static_cast<double>(engine.tuned_at)};
  } while (now != last);
  return now;
}

TEST(EngineTune, AllRanksChangeOverAtOnceAndResultsStayRight) {
  if (size() == 1) GTEST_SKIP() << "nothing to tune";
  std::mt19937 random(rank());
  double tuned_at = -1;
  for (int changes = 0; changes < 4;) {
    change_settings(changes);
    train_a_step(random);
    const auto own = settings();
    const auto all = allgather(std::span(own), {.name = "settings"});
    for (int r = 1; r < size(); ++r)
      if (all[3 * r + 2] == all[2]) {  // one may have heard of the next change already
        EXPECT_EQ(all[3 * r], all[0]) << "rank " << r;
        EXPECT_EQ(all[3 * r + 1], all[1]) << "rank " << r;
      }
    if (all[2] > tuned_at) ++changes;
    tuned_at = all[2];
  }
  barrier();
  const auto own = engine_statistics();
  const std::int64_t reductions[] = {own.reductions, own.reduced_tensors};
  const auto all = allgather(std::span(reductions));
  for (int r = 1; r < size(); ++r) {  // else they would have cut the tensors into other buffers
    EXPECT_EQ(all[2 * r], all[0]);
    EXPECT_EQ(all[2 * r + 1], all[1]);
  }
}

}  // namespace
}  // namespace kolo
