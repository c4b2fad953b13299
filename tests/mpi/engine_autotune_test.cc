// KOLO_AUTOTUNE=1: while the engine tries settings every result is right, and all ranks change over at once.
#include <kolo/collectives/engine/eager.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <utility>

#include <kolo/collectives/job/init.h>

namespace kolo {
namespace {

using testing::Each;
using testing::MatchesRegex;

// Before main() calls init().
const std::string log_path = [] {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("kolo-autotune.{}.csv", getpid())).string();
  setenv("KOLO_AUTOTUNE", "1", 1);
  setenv("KOLO_AUTOTUNE_LOG", path.c_str(), 1);
  return path;
}();

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

std::vector<std::string> rows_of_log() {
  std::ifstream file(log_path);
  std::vector<std::string> rows;
  for (std::string row; std::getline(file, row);)
    if (row[0] != '#') rows.push_back(row);
  return rows;
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

TEST(EngineAutotune, AllRanksChangeOverAtOnceAndResultsStayRight) {
  if (size() == 1) GTEST_SKIP() << "nothing to tune";
  std::mt19937 random(rank());
  double tuned_at = -1;
  for (int changes = 0; changes < 2;) {
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
  if (rank() != 0) return;
  const auto rows = rows_of_log();
  ASSERT_GE(rows.size(), 3U);
  EXPECT_EQ(rows[0], "windows,fusion_bytes,cycle_ms,bytes_per_second,state");
  EXPECT_THAT(std::vector(rows.begin() + 1, rows.end()),
              Each(MatchesRegex("[0-9]+,[0-9]+,[0-9.]+,[0-9]+,(better|worse|frozen)")));
  std::filesystem::remove(log_path);
}

}  // namespace
}  // namespace kolo
