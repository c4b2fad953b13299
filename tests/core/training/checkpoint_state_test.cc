#include <kolo/core/training/checkpoint_files.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CheckpointState, IsTheTextThatTensorFlowWrites) {
  EXPECT_EQ(checkpoint_state_text({"model.ckpt-20", {"model.ckpt-10", "model.ckpt-20"}}),
            "model_checkpoint_path: \"model.ckpt-20\"\n"
            "all_model_checkpoint_paths: \"model.ckpt-10\"\n"
            "all_model_checkpoint_paths: \"model.ckpt-20\"\n");
}

TEST(CheckpointState, ReadsBackNamesWithQuotesAndBackslashes) {
  const std::string name = "a \"b\" \\ c\nd-1";
  const auto state = parse_checkpoint_state(checkpoint_state_text({name, {name}}));
  ASSERT_TRUE(state);
  EXPECT_EQ(state->model_checkpoint_path, name);
  EXPECT_THAT(state->all_model_checkpoint_paths, ElementsAre(name));
}

TEST(CheckpointState, IsUnreadableWhenCutInsideALine) {
  const std::string text = checkpoint_state_text({"m-2", {"m-1", "m-2"}});
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    const bool whole_lines = bytes > 0 && text[bytes - 1] == '\n';
    EXPECT_EQ(parse_checkpoint_state(text.substr(0, bytes)).has_value(), whole_lines) << bytes;
  }
}

TEST(CheckpointState, IsUnreadableWithoutANewest) {
  EXPECT_FALSE(parse_checkpoint_state("all_model_checkpoint_paths: \"m-1\"\n"));
  EXPECT_FALSE(parse_checkpoint_state("model_checkpoint_path: \"m-1\"\nmodel_checkpoint_path: \"m-2\"\n"));
  EXPECT_FALSE(parse_checkpoint_state("something else\n"));
}

TEST(CheckpointState, WarnsAboutADamagedFileAndCountsItAsMissing) {
  TemporaryDirectory folder;
  EXPECT_FALSE(read_checkpoint_state(folder.path()));
  write_checkpoint_state({"m-1", {"m-1"}}, folder.path());
  EXPECT_TRUE(read_checkpoint_state(folder.path()));
  EXPECT_THAT(folder.names(), ElementsAre("checkpoint"));
  write_bytes(folder / "checkpoint", "\xFF\x01");
  testing::internal::CaptureStderr();
  EXPECT_FALSE(read_checkpoint_state(folder.path()));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("Checkpoint ignored"));
}

}  // namespace
}  // namespace kolo
