// Savers that give variables other names in checkpoints than the graph has for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/partitioned_variables.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/core/training/saver.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

class SaverNames : public testing::Test {
 protected:
  SaverNames() { session_.run(global_variables_initializer(model_.s)); }

  std::vector<std::string> tensors_of(const std::string& path) {
    std::vector<std::string> names;
    const CheckpointReader reader(path);
    for (const auto& [name, entry] : reader.index().tensors) names.push_back(name);
    return names;
  }

  TemporaryDirectory folder_;
  CountingGraph model_;
  Session session_{model_.graph};
};

TEST_F(SaverNames, AreThoseOfTheTensorsInTheCheckpoint) {
  const std::string path =
      Saver({{"layer/kernel", model_.w}, {"steps", model_.step}}).save(session_, folder_ / "m", 7);
  EXPECT_THAT(tensors_of(path), ElementsAre("layer/kernel", "steps"));
  EXPECT_EQ(CheckpointReader(path).index().global_step, 7);
}

TEST_F(SaverNames, LetAStepUnderAnotherNameNumberTheCheckpoint) {
  session_.run(model_.train);
  const std::string path = Saver({{"steps", model_.step}}).save(session_, folder_ / "m");
  EXPECT_EQ(CheckpointReader(path).index().global_step, 1);
}

TEST_F(SaverNames, TakeAVariableFromATensorOfAnotherName) {
  const std::string path = Saver(model_.graph).save(session_, folder_ / "m");
  Graph graph;
  const Scope s(graph);
  const Variable other(s.named("other"), constant(s, Tensor::of<float>({2}, {0, 0})));
  Session session(graph);
  Saver({{"w", other}}).restore(session, path);
  EXPECT_THAT(session.run(other.read()).span<float>(), ElementsAre(10, 20));
}

TEST_F(SaverNames, MaySwapTwoVariables) {
  const Variable v(model_.s.named("v"), constant(model_.s, Tensor::of<float>({2}, {3, 4})));
  session_.run(v.initializer());
  const std::string path = Saver({{"w", v}, {"v", model_.w}}).save(session_, folder_ / "m");
  Saver({model_.w, v}).restore(session_, path);
  EXPECT_THAT(session_.run(model_.w.read()).span<float>(), ElementsAre(3, 4));
  EXPECT_THAT(session_.run(v.read()).span<float>(), ElementsAre(10, 20));
}

TEST_F(SaverNames, AreToldWhereTheCheckpointLacksThem) {
  const std::string path = Saver(model_.graph).save(session_, folder_ / "m");
  EXPECT_THAT(
      [&] {
        Saver({{"kernel", model_.w}}).restore(session_, path);
      },
      ThrowsMessage<NotFoundError>(
          AllOf(HasSubstr("Key kernel not found in checkpoint"), Not(HasSubstr("Key w ")))));
}

TEST_F(SaverNames, AreOnePerVariableAndOneVariableEach) {
  EXPECT_THAT(
      [&] {
        Saver({{"a", model_.w}, {"b", model_.w}});
      },
      ThrowsMessage<InvalidArgumentError>("The same saveable will be restored with two names: w"));
  EXPECT_THAT(
      [&] {
        Saver({{"a", model_.w}, {"a", model_.step}});
      },
      ThrowsMessage<InvalidArgumentError>("At least two variables have the same name: a"));
  EXPECT_THAT(
      [&] {
        Saver({{"", model_.w}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("variable \"w\" is to be saved under an empty name")));
}

TEST_F(SaverNames, CannotBeGivenToWhatThePartsOfAWholeShare) {
  const Scope& s = model_.s;
  const PartitionedVariable parts = partitioned_variable(
      s.named("e"), {4, 2},
      [](const Scope& scope, const Shape& part) { return zeros(scope, DType::f32, part); }, fixed_size(2));
  EXPECT_THAT(
      [&] {
        Saver({{"other", parts.parts()[0]}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("it can only be saved as \"e\"")));
  const Variable own(s.named("own"), zeros(s, DType::f32, {2}));
  set_rank_state(model_.graph, own, {.kind = RankState::Kind::own});
  EXPECT_THAT(
      [&] {
        Saver({{"other", own}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("as each rank's own, it can only be saved as \"own\"")));
}

// All of the checkpoint is used: nothing is said of tensors that no variable asks for.
TEST_F(SaverNames, GoThroughAMonitoredTraining) {
  const auto options = [&] {
    return MonitoredTrainingSessionOptions{.checkpoint_dir = folder_.path(),
                                           .save_checkpoint_steps = 1,
                                           .scaffold = {.saver = std::make_shared<Saver>(NamedVariables{
                                                            {"kernel", model_.w}, {"steps", model_.step}})}};
  };
  { MonitoredTrainingSession(model_.graph, options()).run(model_.train); }
  EXPECT_THAT(tensors_of(folder_ / "model.ckpt-1"), ElementsAre("kernel", "steps"));
  testing::internal::CaptureStderr();
  MonitoredTrainingSession sess(model_.graph, options());
  EXPECT_EQ(sess.global_step(), 1);
  EXPECT_THAT(sess.run(model_.w.read()).span<float>(), ElementsAre(11, 21));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("is of another training step")));
}

}  // namespace
}  // namespace kolo
