#include <kolo/core/training/initial_weights.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/core/training/safetensors.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// "w" of CountingGraph and, as an optimizer has it, "w/Momentum".
struct Model : CountingGraph {
  Variable slot{s.named("w/Momentum"), zeros(s, DType::f32, {2}), {.trainable = false}};
  Model() { set_rank_state(graph, slot, {.optional = true}); }
};

class InitialWeightsTest : public testing::Test {
 protected:
  InitialWeightsTest() { set_log_level(LogLevel::warning); }

  // Two steps of training, saved in `folder_`: "w" is 12, 22.
  void train_before() {
    MonitoredTrainingSession sess(model_.graph,
                                  {.checkpoint_dir = folder_.path(), .save_checkpoint_steps = 1});
    for (int i = 0; i < 2; ++i) sess.run(model_.train);
  }
  void write_file(const std::string& path, const std::map<std::string, Tensor>& tensors) {
    DurableFile file(path);
    write_safetensors(file, tensors);
    file.finish();
    file.publish();
  }
  std::vector<float> first_weights(const InitialWeights& from) {
    MonitoredTrainingSession sess(model_.graph, {.initial_weights = from});
    EXPECT_EQ(sess.global_step(), 0);
    const Tensor w = sess.run(model_.w.read());
    return {w.span<float>().begin(), w.span<float>().end()};
  }

  TemporaryDirectory folder_;
  Model model_;
};

TEST_F(InitialWeightsTest, AreThoseOfTheNewestCheckpointOfAFolder) {
  train_before();
  EXPECT_THAT(first_weights({.path = folder_.path()}), ElementsAre(12, 22));
}

TEST_F(InitialWeightsTest, AreThoseOfACheckpoint) {
  train_before();
  EXPECT_THAT(first_weights({.path = folder_ / "model.ckpt-1"}), ElementsAre(11, 21));
}

TEST_F(InitialWeightsTest, AreThoseOfAnySafetensorsFileByAMapOfNames) {
  write_file(folder_ / "other.safetensors", {{"layer.0.weight", Tensor::of<float>({2}, {5, 6})}});
  EXPECT_THAT(first_weights({.path = folder_ / "other.safetensors", .names = {{"w", "layer.0.weight"}}}),
              ElementsAre(5, 6));
}

TEST_F(InitialWeightsTest, LeaveAVariableItsInitialiserWhereTheMapSaysSo) {
  write_file(folder_ / "other.safetensors", {{"x", Tensor::of<float>({2}, {5, 6})}});
  EXPECT_THAT(first_weights({.path = folder_ / "other.safetensors", .names = {{"w", ""}}}),
              ElementsAre(10, 20));
}

TEST_F(InitialWeightsTest, AreTheTransposeOfAMatrixWhereTheNameSaysSo) {
  const Variable matrix(model_.s.named("matrix"), zeros(model_.s, DType::f32, {2, 3}));
  write_file(folder_ / "other.safetensors", {{"w", Tensor::of<float>({2}, {5, 6})},
                                             {"fc.weight", Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6})}});
  MonitoredTrainingSession sess(model_.graph, {.initial_weights = {.path = folder_ / "other.safetensors",
                                                                   .names = {{"matrix", "fc.weight.T"}}}});
  EXPECT_THAT(sess.run(matrix.read()).span<float>(), ElementsAre(1, 3, 5, 2, 4, 6));
}

TEST_F(InitialWeightsTest, AreATensorWhoseOwnNameEndsLikeATranspose) {
  write_file(folder_ / "other.safetensors", {{"w.T", Tensor::of<float>({2}, {5, 6})}});
  EXPECT_THAT(first_weights({.path = folder_ / "other.safetensors", .names = {{"w", "w.T"}}}),
              ElementsAre(5, 6));
}

TEST_F(InitialWeightsTest, RefuseTheTransposeOfWhatIsNoMatrix) {
  write_file(folder_ / "other.safetensors", {{"x", Tensor::of<float>({2}, {5, 6})}});
  EXPECT_THAT(
      [&] {
        first_weights({.path = folder_ / "other.safetensors", .names = {{"w", "x.T"}}});
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("\"x\""), HasSubstr("only a matrix"))));
}

TEST_F(InitialWeightsTest, AreNotReadWhereTheTrainingGoesOnFromItsOwnCheckpoint) {
  train_before();
  MonitoredTrainingSession sess(model_.graph,
                                {.checkpoint_dir = folder_.path(), .initial_weights = {.path = "/nowhere"}});
  EXPECT_EQ(sess.global_step(), 2);
}

TEST_F(InitialWeightsTest, NameWhatTheFileLacksAndWhatItHolds) {
  write_file(folder_ / "other.safetensors", {{"x", Tensor::of<float>({2}, {5, 6})}});
  EXPECT_THAT([&] { first_weights({.path = folder_ / "other.safetensors"}); },
              ThrowsMessage<NotFoundError>(AllOf(HasSubstr("lacks \"w\""), HasSubstr("it holds \"x\""))));
}

TEST_F(InitialWeightsTest, NameBothShapesWhereTheyDiffer) {
  write_file(folder_ / "other.safetensors", {{"w", Tensor::of<float>({3}, {5, 6, 7})}});
  EXPECT_THAT(
      [&] { first_weights({.path = folder_ / "other.safetensors"}); },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("\"w\" is f32 [3]"), HasSubstr("is f32 [2]"))));
}

TEST_F(InitialWeightsTest, NameAWeightThatThereIsNot) {
  write_file(folder_ / "other.safetensors", {{"w", Tensor::of<float>({2}, {5, 6})}});
  EXPECT_THAT(
      [&] {
        first_weights({.path = folder_ / "other.safetensors", .names = {{"v", "w"}}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("\"v\" is no weight of the model")));
}

TEST_F(InitialWeightsTest, NameAPathThatIsNotThere) {
  EXPECT_THAT([&] { first_weights({.path = folder_ / "none"}); },
              ThrowsMessage<NotFoundError>(HasSubstr(folder_ / "none")));
  EXPECT_THAT([&] { first_weights({.path = folder_.path()}); },
              ThrowsMessage<NotFoundError>(HasSubstr("no checkpoint in the folder")));
}

}  // namespace
}  // namespace kolo
