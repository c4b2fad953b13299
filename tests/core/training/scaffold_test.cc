// How the variables of a monitored session get their values where it is not as ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/training/monitored_session.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Scaffolding : testing::Test {
  std::vector<float> w(MonitoredTrainingSession& sess) {
    const Tensor value = sess.session().run(model.w.read());
    return {value.span<float>().begin(), value.span<float>().end()};
  }
  TemporaryDirectory folder;
  CountingGraph model;
};

TEST_F(Scaffolding, RunsItsInitOpWithFeedsAndThenItsFunction) {
  const Output first = placeholder(model.s, DType::f32, {2});
  const Operation init =
      group(model.s.named("my_init"), {assign(model.s, model.w, first), model.step.initializer()});
  std::vector<float> seen;
  MonitoredTrainingSession sess(
      model.graph, {.scaffold = {.init_op = init,
                                 .init_feeds = {{first, Tensor::of<float>({2}, {3, 4})}},
                                 .init_fn = [&](Session& session) {
                                   seen.push_back(session.run(model.w.read()).span<float>()[0]);
                                   session.set_variables({{model.w.name(), Tensor::of<float>({2}, {7, 8})}});
                                 }}});
  EXPECT_THAT(seen, ElementsAre(3));
  EXPECT_THAT(w(sess), ElementsAre(7, 8));
}

TEST_F(Scaffolding, RunsNoInitOpWhereACheckpointIsRestored) {
  { MonitoredTrainingSession(model.graph, {.checkpoint_dir = folder.path()}).run(model.train); }
  bool called = false;
  MonitoredTrainingSession sess(model.graph, {.checkpoint_dir = folder.path(),
                                              .scaffold = {.init_fn = [&](Session&) { called = true; }}});
  EXPECT_FALSE(called);
  EXPECT_THAT(w(sess), ElementsAre(11, 21));
}

TEST_F(Scaffolding, NamesWhatItsInitOpHasLeftOut) {
  const Operation init = group(model.s.named("my_init"), {model.step.initializer()});
  EXPECT_THAT([&] { MonitoredTrainingSession(model.graph, {.scaffold = {.init_op = init}}); },
              ThrowsMessage<FailedPreconditionError>(
                  AllOf(HasSubstr("Init operations did not make model ready.  Init op: my_init"),
                        HasSubstr("Variables not initialized: w"))));
}

TEST_F(Scaffolding, RunsItsLocalInitOpAlsoBesideACheckpoint) {
  const Variable local(model.s.named("local"), constant(model.s, Tensor::scalar(1.0F)), {.local = true});
  const Operation init = assign(model.s, local, constant(model.s, Tensor::scalar(5.0F)));
  for (int start = 0; start < 2; ++start) {
    MonitoredTrainingSession sess(model.graph,
                                  {.checkpoint_dir = folder.path(), .scaffold = {.local_init_op = init}});
    EXPECT_EQ(sess.session().run(local.read()).value<float>(), 5);
  }
}

TEST_F(Scaffolding, AsksItsOwnFunctionWhetherAllIsReady) {
  EXPECT_THAT(
      [&] {
        MonitoredTrainingSession(model.graph, {.scaffold = {.ready = [](Session&) {
                                                 return std::vector<std::string>{"table", "queue"};
                                               }}});
      },
      ThrowsMessage<FailedPreconditionError>(HasSubstr("Variables not initialized: table, queue")));
}

TEST_F(Scaffolding, AsksBeforeItsLocalInitOpWhetherAllIsReadyForIt) {
  const Variable local(model.s.named("local"), constant(model.s, Tensor::scalar(1.0F)), {.local = true});
  bool asked = false;
  MonitoredTrainingSession sess(model.graph, {.scaffold = {.ready_for_local_init = [&](Session& session) {
                                                asked = true;
                                                EXPECT_EQ(report_uninitialized_variables(session),
                                                          std::vector<std::string>{"local"});
                                                return std::vector<std::string>();
                                              }}});
  EXPECT_TRUE(asked);
  EXPECT_EQ(sess.session().run(local.read()).value<float>(), 1);
}

TEST_F(Scaffolding, NamesWhatIsNotReadyForItsLocalInitOp) {
  EXPECT_THAT(
      [&] {
        MonitoredTrainingSession(model.graph, {.scaffold = {.ready_for_local_init = [](Session&) {
                                                 return std::vector<std::string>{"table"};
                                               }}});
      },
      ThrowsMessage<FailedPreconditionError>(AllOf(
          HasSubstr("Init operations did not make model ready for local_init.  Init op: the initialisers"),
          HasSubstr("Variables not initialized: table"))));
}

TEST_F(Scaffolding, SavesAndRestoresByItsSaver) {
  const auto saver = std::make_shared<Saver>(std::vector<Variable>{model.step, model.w},
                                             SaverOptions{.max_to_keep = 0, .pad_step_number = true});
  {
    MonitoredTrainingSession sess(
        model.graph,
        {.checkpoint_dir = folder.path(), .save_checkpoint_steps = 1, .scaffold = {.saver = saver}});
    sess.run(model.train);
  }
  EXPECT_THAT(folder.names(), testing::Contains("model.ckpt-00000001.index.json"));
}

TEST_F(Scaffolding, StartsFromOneCheckpointThatIsNamed) {
  {
    MonitoredTrainingSession sess(model.graph, {.checkpoint_dir = folder.path(), .save_checkpoint_steps = 1});
    for (int i = 0; i < 2; ++i) sess.run(model.train);
  }
  MonitoredTrainingSession sess(model.graph, {.checkpoint_filename_with_path = folder / "model.ckpt-1"});
  EXPECT_EQ(sess.global_step(), 1);
  EXPECT_THAT(w(sess), ElementsAre(11, 21));
  EXPECT_THAT(
      [&] {
        MonitoredTrainingSession(model.graph,
                                 {.checkpoint_dir = folder.path(), .checkpoint_filename_with_path = "x"});
      },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("Can not provide both checkpoint_dir and checkpoint_filename_with_path")));
}

}  // namespace
}  // namespace kolo
