// What is fed from ordinary memory goes through pinned pieces, so that no step is stopped by CUDA's own way.
// KOLO_FAKE_CUDA_REFUSE=feeds: another copy ends the process.
#include <gtest/gtest.h>

#include <cstdlib>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

constexpr std::int64_t kElements = (std::int64_t{5} << 17) + 3;  // two pieces and a half, and a little

// Steps whose feed is written anew in between, node by node and replayed.
void run_steps() {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Output x = placeholder(s, DType::f32, {kElements});
  Output y = x;
  for (int i = 0; i < 4; ++i) y = neg(s, y);  // enough for a graph
  Session session(graph, {.graph_options = {.optimizer_level = OptimizerLevel::l0}});
  Tensor fed(DType::f32, {kElements});
  for (int step = 0; step < 8; ++step) {
    for (std::int64_t i = 0; i < kElements; ++i) fed.data<float>()[i] = static_cast<float>(i % 1009 + step);
    const Tensor made = session.run(y, {{x, fed}});
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < kElements; ++i) wrong += made.data<float>()[i] != fed.data<float>()[i];
    EXPECT_EQ(wrong, 0) << step;
  }
}

TEST(OrdinaryFeeds, GoThroughPinnedPieces) { run_steps(); }

TEST(OrdinaryFeedsDeathTest, AreReportedWhereTheyGoAsTheyAre) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run_without = [] {
    setenv("KOLO_FAKE_CUDA_BREAK", "staged", 1);
    run_steps();
  };
  EXPECT_EXIT(run_without(), ::testing::ExitedWithCode(70),
              "from memory that is not pinned: the host stages it");
}

}  // namespace
}  // namespace kolo
