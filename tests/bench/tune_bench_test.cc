// The table that kolo-bench tune writes is one that KOLO_AUTOTUNE reads.
#include <bench/tune_bench.h>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>

namespace kolo::bench {
namespace {

const CostModel kMeasured{
    .inside = {2e-6, 1 / 5e9}, .between = {40e-6, 1 / 1.25e9}, .seconds_per_reduced_byte = 1 / 8e9};

TEST(CostTable, IsReadBackAsItWasMeasured) {
  for (const int indent : {-1, 2}) {
    const CostModel read = CostModel::from_json(cost_table(kMeasured, {"a", "a", "b"}, indent));
    EXPECT_DOUBLE_EQ(read.inside.latency_s, 2e-6);
    EXPECT_DOUBLE_EQ(read.inside.seconds_per_byte, 1 / 5e9);
    EXPECT_DOUBLE_EQ(read.between.latency_s, 40e-6);
    EXPECT_DOUBLE_EQ(read.between.seconds_per_byte, 1 / 1.25e9);
    EXPECT_DOUBLE_EQ(read.seconds_per_reduced_byte, 1 / 8e9);
  }
}

TEST(CostTable, SaysForWhichHostsItHolds) {
  const auto table = nlohmann::json::parse(cost_table(kMeasured, {"a", "a", "b"}));
  EXPECT_EQ(table.at("hosts"), nlohmann::json({"a", "a", "b"}));
}

TEST(TuneBench, RefusesAJobOfOneRank) { EXPECT_THROW(tune_bench({}), InvalidArgumentError); }

}  // namespace
}  // namespace kolo::bench
