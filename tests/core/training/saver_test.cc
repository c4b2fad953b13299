#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/saver.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/runtime/session_state.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;

class SaverTest : public testing::Test {
 protected:
  SaverTest() { session_.run(global_variables_initializer(model_.s)); }

  TemporaryDirectory folder_;
  CountingGraph model_;
  Session session_{model_.graph};
};

TEST_F(SaverTest, GivesBackWhatItSaved) {
  for (int i = 0; i < 3; ++i) session_.run(model_.train);
  Saver saver(model_.graph);
  const std::string path = saver.save(session_, folder_ / "model.ckpt", 3, {{"samples", "7"}});
  EXPECT_EQ(path, folder_ / "model.ckpt-3");

  Session other(model_.graph);
  const CheckpointIndex index = Saver(model_.graph).restore(other, path);
  EXPECT_EQ(model_.global_step(other), 3);
  EXPECT_THAT(other.run(model_.w.read()).span<float>(), ElementsAre(13, 23));
  EXPECT_EQ(index.global_step, 3);
  EXPECT_EQ(index.state.at("samples"), "7");
}

TEST_F(SaverTest, TakesTheStepFromTheGraphWhereNoneIsGiven) {
  session_.run(model_.train);
  const std::string path = Saver(model_.graph).save(session_, folder_ / "model");
  EXPECT_EQ(path, folder_ / "model");
  EXPECT_EQ(CheckpointReader(path).index().global_step, 1);
}

TEST_F(SaverTest, ContinuesTheSequenceOfRandomNumbers) {
  const Output noise = random_uniform(model_.s.named("noise"), DType::f32, {4}, 0, 1, 17);
  session_.run(noise);
  Saver saver(model_.graph);
  saver.save(session_, folder_ / "model.ckpt", 1);
  const Tensor expected = session_.run(noise);

  Session other(model_.graph);
  saver.restore(other, folder_ / "model.ckpt-1");
  const Tensor found = other.run(noise);
  EXPECT_THAT(found.span<float>(), testing::ElementsAreArray(expected.span<float>()));
}

// Row 57 of the worked examples.
TEST_F(SaverTest, KeepsTheLastTwoAndMovesAPathThatIsSavedAgainToTheEnd) {
  Saver saver(model_.graph, {.max_to_keep = 2});
  for (const char* name : {"s1", "s2", "s3", "s2"}) saver.save(session_, folder_ / name);
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(folder_ / "s3", folder_ / "s2"));
  EXPECT_THAT(folder_.names(), ElementsAre("checkpoint", "s2.index.json", "s2.safetensors", "s3.index.json",
                                           "s3.safetensors"));
  EXPECT_EQ(bytes_of_file(folder_ / "checkpoint"),
            "model_checkpoint_path: \"s2\"\nall_model_checkpoint_paths: \"s3\"\nall_model_checkpoint_paths: "
            "\"s2\"\n");
}

TEST_F(SaverTest, KeepsFiveUnlessToldOtherwise) {
  Saver saver(model_.graph);
  for (int step = 1; step <= 7; ++step) saver.save(session_, folder_ / "model.ckpt", step);
  EXPECT_EQ(list_checkpoints(folder_.path()).size(), 5u);
  EXPECT_THAT(folder_.names(), Not(Contains(StartsWith("model.ckpt-2"))));
  EXPECT_THAT(folder_.names(), Contains(StartsWith("model.ckpt-3")));
}

TEST_F(SaverTest, KeepsAllWithZeroAndListsTheNewest) {
  Saver saver(model_.graph, {.max_to_keep = 0});
  for (int step = 1; step <= 3; ++step) saver.save(session_, folder_ / "m", step);
  EXPECT_EQ(folder_.names().size(), 7u);
  EXPECT_EQ(bytes_of_file(folder_ / "checkpoint"),
            "model_checkpoint_path: \"m-3\"\nall_model_checkpoint_paths: \"m-3\"\n");
}

TEST_F(SaverTest, GoesOnCountingAfterARestart) {
  Saver first(model_.graph, {.max_to_keep = 2});
  for (int step = 1; step <= 2; ++step) first.save(session_, folder_ / "m", step);
  Saver second(model_.graph, {.max_to_keep = 2});
  second.recover_last_checkpoints({folder_ / "gone", folder_ / "m-1", folder_ / "m-2"});
  EXPECT_THAT(second.last_checkpoints(), ElementsAre(folder_ / "m-1", folder_ / "m-2"));
  second.save(session_, folder_ / "m", 3);
  EXPECT_THAT(folder_.names(), Not(Contains(StartsWith("m-1."))));
}

TEST_F(SaverTest, PadsTheStepWhenAsked) {
  EXPECT_EQ(Saver(model_.graph, {.pad_step_number = true}).save(session_, folder_ / "m", 20),
            folder_ / "m-00000020");
}

TEST_F(SaverTest, WritesEqualBytesForEqualState) {
  Saver saver(model_.graph);
  saver.save(session_, folder_ / "a");
  saver.save(session_, folder_ / "b");
  EXPECT_EQ(bytes_of_file(folder_ / "a.safetensors"), bytes_of_file(folder_ / "b.safetensors"));
  EXPECT_EQ(bytes_of_file(folder_ / "a.index.json"), bytes_of_file(folder_ / "b.index.json"));
}

TEST_F(SaverTest, RestoresASubsetAndIgnoresOtherTensorsOfTheFile) {
  Saver(model_.graph).save(session_, folder_ / "m");
  Session other(model_.graph);
  Saver({model_.w}).restore(other, folder_ / "m");
  EXPECT_THAT(other.run(model_.w.read()).span<float>(), ElementsAre(10, 20));
  EXPECT_FALSE(detail::storage_of(other, model_.step).initialized);
}

TEST_F(SaverTest, NamesMissingAndMisshapedTensorsOfAnotherModel) {
  Saver(model_.graph).save(session_, folder_ / "m");
  Graph other;
  Scope s(other);
  const Variable w(s.named("w"), zeros(s, DType::f32, {3}));
  const Variable b(s.named("b"), zeros(s, DType::f32, {1})), c(s.named("c"), zeros(s, DType::f32, {1}));
  Session session(other);
  EXPECT_THAT(
      [&] { Saver(other).restore(session, folder_ / "m"); },
      ThrowsMessage<NotFoundError>(AllOf(
          StartsWith("Restoring from checkpoint failed. This is most likely due to a Variable name or other "
                     "graph key that is missing from the checkpoint."),
          HasSubstr("Key b not found in checkpoint"), HasSubstr("Key c not found in checkpoint"),
          HasSubstr("lhs shape= [3] rhs shape= [2] (\"w\")"))));
  EXPECT_FALSE(detail::storage_of(session, w).initialized);
}

TEST_F(SaverTest, NamesMisshapedTensors) {
  Saver(model_.graph).save(session_, folder_ / "m");
  Graph other;
  Scope s(other);
  const Variable w(s.named("w"), zeros(s, DType::f32, {2, 1}));
  Session session(other);
  EXPECT_THAT(
      [&] { Saver(other).restore(session, folder_ / "m"); },
      ThrowsMessage<InvalidArgumentError>(AllOf(
          HasSubstr("due to a mismatch between the current graph and the graph from the checkpoint."),
          HasSubstr("Assign requires shapes of both tensors to match. lhs shape= [2,1] rhs shape= [2]"))));
}

TEST_F(SaverTest, NamesTensorsOfAnotherType) {
  Saver(model_.graph).save(session_, folder_ / "m");
  Graph other;
  Scope s(other);
  const Variable w(s.named("w"), zeros(s, DType::f64, {2}));
  Session session(other);
  EXPECT_THAT(
      [&] { Saver(other).restore(session, folder_ / "m"); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("\"w\" is f64 in the graph but f32 in the checkpoint")));
}

TEST_F(SaverTest, ChangesNothingWhereTheFileIsDamaged) {
  session_.run(model_.train);
  Saver saver(model_.graph);
  saver.save(session_, folder_ / "m");
  std::string bytes = bytes_of_file(folder_ / "m.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 0x40);
  write_bytes(folder_ / "m.safetensors", bytes);
  session_.run(model_.train);
  EXPECT_THROW(saver.restore(session_, folder_ / "m"), DataLossError);
  EXPECT_EQ(model_.global_step(session_), 2);
}

TEST_F(SaverTest, NamesAPathThatIsNoCheckpoint) {
  Saver saver(model_.graph);
  EXPECT_THAT([&] { saver.restore(session_, folder_ / "none"); },
              ThrowsMessage<InvalidArgumentError>("The passed save_path is not a valid checkpoint: " +
                                                  (folder_ / "none")));
  EXPECT_THAT([&] { saver.restore(session_, ""); },
              ThrowsMessage<InvalidArgumentError>("Can't load save_path when it is None."));
}

TEST_F(SaverTest, WantsAFolderThatExists) {
  EXPECT_THAT([&] { Saver(model_.graph).save(session_, folder_ / "none/m", 1); },
              ThrowsMessage<InvalidArgumentError>(
                  fmt::format("Parent directory of {} doesn't exist, can't save.", folder_ / "none/m-1")));
}

TEST_F(SaverTest, DoesNotSaveAVariableWithoutAValue) {
  Session fresh(model_.graph);
  EXPECT_THAT([&] { Saver(model_.graph).save(fresh, folder_ / "m"); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("Attempting to use uninitialized value")));
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(SaverTest, WantsVariablesWithDifferentNames) {
  Graph empty;
  EXPECT_THAT([&] { Saver{empty}; }, ThrowsMessage<InvalidArgumentError>("No variables to save"));
  EXPECT_THAT(
      [&] {
        Saver({model_.w, model_.w});
      },
      ThrowsMessage<InvalidArgumentError>("At least two variables have the same name: w"));
}

}  // namespace
}  // namespace kolo
