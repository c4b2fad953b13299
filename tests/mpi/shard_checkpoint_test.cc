// Checkpoints of a tensor of which each rank holds a part.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/training/common_start.h>
#include <kolo/core/training/hooks.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/optimizer/rules.h>
#include <tests/mpi/spread_checkpoint.h>
#include <tests/optimizer/small_training.h>
#include <tests/support/paths.h>

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Matches;
using testing::ThrowsMessage;

// Beside a training step, "w/Adam" of 11 elements, of which rank 0 holds 7, the last the rest, and those
// between none. Each step adds 1 + i to element i.
struct Sharded {
  Sharded() {
    const std::int64_t first = rank() == 0 ? 0 : 7, n = rank() == 0 ? 7 : rank() == size() - 1 ? 4 : 0;
    slot = Variable(s.named("w/shard/Adam"), zeros(s, DType::f32, {n}), {.trainable = false});
    set_rank_state(graph, slot,
                   {.kind = RankState::Kind::part, .whole = {"w/Adam", {11}}, .range = {.first = first}});
    std::vector<float> added;
    for (std::int64_t i = first; i < first + n; ++i) added.push_back(static_cast<float>(1 + i));
    expected = added;
    DistributedOptimizer optimizer(std::make_unique<MomentumOptimizer>(0.1f, 0.9f));
    train = group(s, {optimizer.minimize(s, mul(s, w, fill(s, DType::f32, {2}, 1 + rank()))),
                      assign_add(s, slot, constant(s, tensor_of(added)))});
  }
  std::vector<float> values(Session& session) { return elements<float>(session.run(slot.read())); }
  // After `steps` steps.
  std::vector<float> values_after(int steps) const {
    std::vector<float> all = expected;
    for (float& value : all) value *= static_cast<float>(steps);
    return all;
  }

  Graph graph;
  Scope s{graph};
  Variable w{s.named("w"), zeros(s, DType::f32, {2})};
  Variable slot;
  std::vector<float> expected;
  Operation train;
};

class Shards : public SpreadCheckpoint {
 protected:
  void SetUp() override {
    if (size() == 1) GTEST_SKIP() << "one rank holds all";
  }
  static std::vector<float> whole_after(int steps) {
    std::vector<float> all;
    for (int i = 1; i <= 11; ++i) all.push_back(static_cast<float>(i * steps));
    return all;
  }
  void train_to(MonitoredTrainingSession& session, const Sharded& model, std::int64_t step) {
    while (session.global_step() < step) session.run(model.train);
  }
};

TEST_F(Shards, AreSavedAsOneTensorAndRestoredInParts) {
  Sharded model;
  {
    MonitoredTrainingSession session(model.graph, options(2));
    train_to(session, model, 3);
    session.close();
  }
  if (rank() == 0) {
    EXPECT_THAT(folder_.names(), testing::Contains("model.ckpt-2.index.json"));
    const Tensor whole = SafetensorsReader(folder_ / "model.ckpt-3.safetensors").read("w/Adam");
    EXPECT_EQ(elements<float>(whole), whole_after(3));
  }
  Sharded again;
  MonitoredTrainingSession session(again.graph, options());
  EXPECT_EQ(again.values(session.session()), again.values_after(3));
  train_to(session, again, 5);
  EXPECT_EQ(again.values(session.session()), again.values_after(5));
}

// Steps 2 and 4 are evaluated, and the end; step 4 is worse, and the end no better than step 2.
TEST_F(Shards, AreSavedByTheHookThatKeepsTheBestCheckpoint) {
  Sharded model;
  int evaluations = 0;
  const auto evaluation = std::make_shared<EvaluationHook>(
      EvaluationOptions{.evaluate = [&](Session&) -> std::map<std::string, double> {
                          return {{"loss", 1.0 + ++evaluations}};
                        },
                        .every_n_steps = 2});
  MonitoredTrainingSessionOptions with_hooks = {.hooks = {evaluation}};
  if (rank() == 0)
    with_hooks.hooks.push_back(std::make_shared<BestCheckpointHook>(
        evaluation, BestCheckpointOptions{.checkpoint_dir = folder_ / "best"}));
  {
    MonitoredTrainingSession session(model.graph, with_hooks);
    train_to(session, model, 5);
    session.close();
  }
  EXPECT_EQ(evaluations, 3);
  if (rank() != 0) return;
  const Tensor whole = SafetensorsReader(folder_ / "best/best.ckpt-2.safetensors").read("w/Adam");
  EXPECT_EQ(elements<float>(whole), whole_after(2));
}

TEST_F(Shards, ChangePlacesWithAPlainVariable) {
  const auto make_plain = [](Graph& graph) {
    const Scope s(graph);
    const Variable w(s.named("w"), zeros(s, DType::f32, {2}));
    const Variable slot(s.named("w/Adam"), zeros(s, DType::f32, {11}), {.trainable = false});
    Variable(s.named("w/Momentum"), zeros(s, DType::f32, {2}), {.trainable = false});
    get_or_create_global_step(s);
    return slot;
  };
  Sharded model;
  {
    MonitoredTrainingSession session(model.graph, options());
    train_to(session, model, 3);
  }
  Graph plain;
  const Variable slot = make_plain(plain);
  {
    MonitoredTrainingSession session(plain, options());
    EXPECT_EQ(elements<float>(session.run(slot.read())), whole_after(3));
  }
  if (rank() == 0) {
    EXPECT_EQ(newest_checkpoint(), "model.ckpt-3");
  }
  Sharded again;
  MonitoredTrainingSession session(again.graph, options());
  EXPECT_EQ(again.values(session.session()), again.values_after(3));
}

TEST_F(Shards, OfAPlainSessionAreSavedOnceTheRanksHavePutThemTogether) {
  Sharded model;
  Session session(model.graph);
  detail::run_initializers(session, global_variables(model.graph));
  Saver saver(model.graph);
  EXPECT_THAT(
      [&] { saver.save(session, folder_ / "a"); },
      ThrowsMessage<FailedPreconditionError>(AllOf(HasSubstr("w/shard/Adam"), HasSubstr("GatheredState"))));
  {
    const GatheredState together(session);
    if (rank() == 0) {
      const std::string path = saver.save(session, folder_ / "a", {}, {}, &together);
      EXPECT_EQ(elements<float>(SafetensorsReader(path + ".safetensors").read("w/Adam")), whole_after(0));
    } else {
      EXPECT_THAT([&] { saver.save(session, folder_ / "a", {}, {}, &together); },
                  ThrowsMessage<FailedPreconditionError>(HasSubstr("rank 0 alone can save it")));
    }
    session.run(model.train);
    if (rank() == 0) {
      EXPECT_THAT([&] { saver.save(session, folder_ / "b", {}, {}, &together); },
                  ThrowsMessage<FailedPreconditionError>(HasSubstr("has changed since")));
    }
  }
  world_group().allgather("done");
}

void save_as_the_page_shows(Session& session, Saver& saver, const std::string& folder) {
  // page: loop
  const GatheredState together(session);  // on all ranks
  if (rank() == 0) saver.save(session, folder + "/model.ckpt", 200, {}, &together);
  // page end
}

TEST_F(Shards, AreSavedByALoopOfOnesOwnAsThePageShows) {
  const std::string source = bytes_of_file(source_path("tests/mpi/shard_checkpoint_test.cc"));
  const std::string begin = "  // page: loop\n", end = "  // page end\n";
  const auto from = source.find("\n" + begin) + 1 + begin.size();
  std::istringstream lines(source.substr(from, source.find("\n" + end, from) + 1 - from));
  std::string shown;
  for (std::string line; std::getline(lines, line);) shown += line.substr(2) + "\n";
  EXPECT_THAT(bytes_of_file(source_path("docs/checkpoints.md")), HasSubstr("```cpp\n" + shown + "```"));

  const std::string folder = world_group().broadcast(folder_.path(), 0);
  Sharded model;
  Session session(model.graph);
  detail::run_initializers(session, global_variables(model.graph));
  session.run(model.train);
  Saver saver(model.graph);
  save_as_the_page_shows(session, saver, folder);
  world_group().allgather("saved");
  Session restored(model.graph);
  saver.restore(restored, folder + "/model.ckpt-200");
  EXPECT_EQ(model.values(restored), model.values_after(1));
  world_group().allgather("restored");
}

TEST_F(Shards, AreNotSavedWhereOneRankFailsBehindTheLastStep) {
  Sharded model;
  MonitoredTrainingSessionOptions failing = options();
  const auto hook = std::make_shared<CallbackHook>(nullptr);
  hook->after = [&](RunContext&, int run) {
    if (run == 2 && is_last()) throw InvalidArgumentError("a bad sample");
  };
  failing.hooks = {std::make_shared<StopAtStepHook>(3), hook};
  std::string error;
  try {
    MonitoredTrainingSession session(model.graph, failing);
    while (!session.should_stop()) session.run(model.train);
    session.close();
  } catch (const Error& e) {
    error = e.what();
  }
  EXPECT_EQ(error, is_last() ? "a bad sample" : fmt::format("rank {}: a bad sample", size() - 1));
  if (rank() == 0) {
    EXPECT_EQ(newest_checkpoint(), "model.ckpt-0");
  }
}

// Each rank updates its part of w and has the slots of that part alone.
TEST_F(Shards, OfAShardedOptimizerMakeTheSameCheckpointAsThePlainOne) {
  for (const std::string rule : {"adam", "momentum"}) {
    std::vector<std::string> files;
    // Whether the first four steps, and the others, are sharded; a checkpoint stands between them.
    for (const auto& [first, second] :
         {std::pair(false, false), {true, true}, {true, false}, {false, true}}) {
      const TemporaryDirectory folder;
      MonitoredTrainingSessionOptions all = options();
      if (rank() == 0) all.checkpoint_dir = folder.path();
      Training begun({.sharded = first}, rule), ended({.sharded = second}, rule);
      EXPECT_EQ(rank_parts(begun.graph).empty(), !first);
      train(begun, all, 4);
      train(ended, all, kSteps);
      if (rank() == 0) files.push_back(bytes_of_file(folder / "model.ckpt-10.safetensors"));
    }
    for (const std::string& file : files) EXPECT_TRUE(!file.empty() && file == files[0]) << rule;
  }
}

// Behind the reduction of a step: it fails where it is asked to, on the last rank.
std::exception_ptr check_error;
const RegisterOp check_op(OpSchema("TestSpreadCheck").stateful().no_gradient());
const RegisterKernel check_kernel("TestSpreadCheck", "CPU", {}, [](KernelContext&) {
  if (check_error) std::rethrow_exception(check_error);
});

// The end of some data, too: the others have applied the step.
TEST_F(Shards, AreNotSavedWhereOneRankFailsBehindTheReductionOfTheStep) {
  for (const auto& thrown : {std::make_exception_ptr(InvalidArgumentError("a bad sum")),
                             std::make_exception_ptr(OutOfRangeError("a bad sum"))}) {
    Sharded model;
    const Operation check = model.s.control_dependencies({model.train}).add("TestSpreadCheck", {});
    std::string error;
    try {
      MonitoredTrainingSession session(model.graph, options(2));
      while (!session.should_stop()) {
        check_error = is_last() && session.global_step() == 1 ? thrown : nullptr;
        session.run(check);
      }
    } catch (const Error& e) {
      error = e.what();
    }
    check_error = nullptr;
    EXPECT_THAT(error, HasSubstr("a bad sum"));
    EXPECT_EQ(Matches(HasSubstr(fmt::format("rank {}: ", size() - 1)))(error), !is_last()) << error;
    if (rank() == 0) {
      EXPECT_EQ(newest_checkpoint(), "model.ckpt-0");
    }
  }
}

}  // namespace
}  // namespace kolo
