// In which order a save changes the folder: whatever moment a crash or a power cut comes at, one checkpoint
// is whole, and the state file names one that is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/training/saver.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"
#include "tests/recorded_calls.h"

namespace kolo {
namespace {

using testing::Contains;

// Saves step 1 unseen, then step 2, which pushes step 1 out.
class CheckpointOrder : public testing::Test {
 protected:
  CheckpointOrder() {
    session_.run(global_variables_initializer(model_.s));
    saver_.save(session_, folder_ / "m", 1);
    calls_.emplace(folder_.path());
    saver_.save(session_, folder_ / "m", 2);
  }

  TemporaryDirectory folder_;
  CountingGraph model_;
  Session session_{model_.graph};
  Saver saver_{model_.graph, {.max_to_keep = 1}};
  std::optional<RecordedCalls> calls_;
};

TEST_F(CheckpointOrder, ForcesEachFileToTheDiskBetweenItsLastByteAndItsName) {
  for (const std::string name : {"m-2.safetensors", "m-2.index.json", "checkpoint"}) {
    EXPECT_TRUE(calls_->is_before("write " + name + ".tmp", "fsync " + name + ".tmp")) << name;
    EXPECT_TRUE(calls_->is_before("fsync " + name + ".tmp", "rename " + name)) << name;
  }
}

TEST_F(CheckpointOrder, NamesTheIndexAfterTheTensorsThatItVouchesFor) {
  EXPECT_TRUE(calls_->is_before("rename m-2.safetensors", "rename m-2.index.json"));
}

// fsync of the folder: once for the checkpoint, before the state file names it, and once for the state file.
TEST_F(CheckpointOrder, ForcesTheNamesToTheDiskBeforeAnythingCountsOnThem) {
  const auto all = calls_->calls();
  const auto at = [&](const std::string& call) { return std::find(all.begin(), all.end(), call); };
  ASSERT_NE(at("rename checkpoint"), all.end());
  EXPECT_THAT(std::vector<std::string>(at("rename m-2.index.json"), at("rename checkpoint")),
              Contains("fsync ."));
  EXPECT_THAT(std::vector<std::string>(at("rename checkpoint"), at("unlink m-1.index.json")),
              Contains("fsync ."));
}

TEST_F(CheckpointOrder, RemovesTheOldOnceTheStateFileNamesTheNew) {
  EXPECT_TRUE(calls_->is_before("rename checkpoint", "unlink m-1.index.json"));
  EXPECT_TRUE(calls_->is_before("rename checkpoint", "unlink m-1.safetensors"));
}

// Without its index a checkpoint is not counted: what is left of it is no damaged one.
TEST_F(CheckpointOrder, RemovesTheIndexOfTheOldFirst) {
  EXPECT_TRUE(calls_->is_before("unlink m-1.index.json", "unlink m-1.safetensors"));
}

}  // namespace
}  // namespace kolo
