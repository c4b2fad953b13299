// Which costs the ranks agree on: the defaults, measured ones, or those of rank 0's file.
#include <kolo/collectives/job/settings.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <kolo/collectives/job/init.h>
#include <kolo/collectives/job/runtime.h>
#include <kolo/core/base/error.h>
#include <kolo/core/runtime/group.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::ThrowsMessage;

const CostModel kTable{
    .inside = {2e-6, 1 / 5e9}, .between = {40e-6, 1 / 1e9}, .seconds_per_reduced_byte = 1 / 8e9};

class DecideCosts : public testing::Test {
 protected:
  static CostModel decide(const EngineOptions& options) {
    CostModel costs;
    const auto runtime = detail::current_runtime();
    runtime->thread().call([&] {
      costs = detail::decide_costs(options, runtime->world().messages(), runtime->world().topology());
    });
    return costs;
  }
  // Only rank 0 has it.
  std::string written(const std::string& text) const {
    if (rank() == 0) std::ofstream(folder_ / "costs.json") << text;
    return rank() == 0 ? folder_ / "costs.json" : "/proc/none";
  }

  TemporaryDirectory folder_;
};

TEST_F(DecideCosts, KeepsTheDefaultsUnlessItIsAsked) { EXPECT_EQ(decide({}), CostModel()); }

TEST_F(DecideCosts, ReadsTheFileOfRankZeroOnAllRanks) {
  EngineOptions options;
  options.cost_table = written(kTable.to_json());
  EXPECT_EQ(decide(options).to_json(), kTable.to_json());
}

TEST_F(DecideCosts, RefusesAMissingFileOnAllRanks) {
  EngineOptions options;
  options.cost_table = folder_ / "not_there.json";
  EXPECT_THAT([&] { decide(options); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("rank 0 cannot read this file, or it is empty")));
}

TEST_F(DecideCosts, RefusesAFileThatIsNoTableOnAllRanks) {
  EngineOptions options;
  options.cost_table = written("{\"inside\": 3}");
  EXPECT_THROW(decide(options), InvalidArgumentError);
}

TEST_F(DecideCosts, GivesAllRanksWhatRankZeroHasMeasured) {
  EngineOptions options;
  options.autotune = true;
  const CostModel costs = decide(options);
  EXPECT_THAT(world_group().allgather(costs.to_json()), Each(costs.to_json()));
  EXPECT_GT(costs.inside.latency_s, 0);
  EXPECT_GT(costs.seconds_per_reduced_byte, 0);
  EXPECT_EQ(costs.between, CostModel().between);  // there is one host here
}

TEST_F(DecideCosts, AppendsWhatWasFoundToTheLogOfRankZero) {
  EngineOptions options;
  options.cost_table = written(kTable.to_json());
  options.autotune_log = folder_ / "log";
  decide(options);
  decide(options);
  const std::string line = kTable.to_json() + "\n";
  if (rank() == 0) EXPECT_EQ(bytes_of_file(folder_ / "log"), "# " + line + "# " + line);
  else EXPECT_FALSE(std::filesystem::exists(folder_ / "log"));
}

}  // namespace
}  // namespace kolo
