#include <kolo/core/training/rank_state.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/session_state.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/common_start.h>
#include <kolo/core/training/rank_state_internal.h>
#include <kolo/core/training/saver.h>

#include "tests/core/stub_vote.h"
#include "tests/core/training/temporary_directory.h"
#include "tests/core/training/thread_group.h"

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;

// A step that ranks share.
const RegisterOp step_op(OpSchema("TestGatheredStep").stateful().no_gradient());
const RegisterVote step_vote("TestGatheredStep",
                             [](const Node&, const DeviceSet&) -> std::shared_ptr<StepVote> {
                               return std::make_shared<testing::StubVote>();
                             });

// Rank r holds the elements [begins[r], begins[r + 1]) of "w/Adam", of shape [2,5] and 0, 1, … 9.
struct Sharded {
  Sharded(const std::vector<std::int64_t>& begins, int rank) : first(begins[rank]) {
    const std::int64_t n = begins[rank + 1] - first;
    slot = Variable(s.named("w/shard/Adam"), fill(s, DType::f32, {n}, -1), {.trainable = false});
    set_rank_state(graph, slot,
                   {.kind = RankState::Kind::part, .whole = {"w/Adam", {2, 5}}, .range = {.first = first}});
  }
  void set_values() {
    Tensor values(DType::f32, slot.shape());
    for (std::int64_t i = 0; i < slot.shape().elements(); ++i)
      values.data<float>()[i] = static_cast<float>(first + i);
    detail::write_variable(detail::storage_of(session, slot), values);
  }
  std::vector<float> values() {
    const Tensor value = session.run(slot.read());
    return {value.span<float>().begin(), value.span<float>().end()};
  }

  Graph graph;
  Scope s{graph};
  std::int64_t first;
  Variable slot;
  Session session{graph};
};

std::vector<float> numbers(int begin, int end) {
  std::vector<float> all;
  for (int i = begin; i < end; ++i) all.push_back(static_cast<float>(i));
  return all;
}

// What the ranks whose shards begin so put together.
std::vector<std::string> gather(const std::vector<std::int64_t>& begins, std::map<std::string, Tensor>& all) {
  return run_ranks(static_cast<int>(begins.size()) - 1, [&](Group& group) {
    Sharded model(begins, group.rank());
    model.set_values();
    const GatheredState together(model.session, group);
    if (group.rank() == 0)
      for (const auto& [name, tensor] : together.tensors()) all[name] = tensor.clone();
  });
}

TEST(GatheredState, MakesShardsWhole) {
  for (const auto& begins :
       std::vector<std::vector<std::int64_t>>{{0, 6, 10}, {0, 7, 7, 10}, {0, 0, 10, 10}}) {
    std::map<std::string, Tensor> all;
    EXPECT_THAT(gather(begins, all), Each(IsEmpty()));
    ASSERT_THAT(all, ElementsAre(Key("w/Adam")));
    EXPECT_EQ(all["w/Adam"].shape(), Shape({2, 5}));
    EXPECT_THAT(all["w/Adam"].span<float>(), ::testing::ElementsAreArray(numbers(0, 10)));
  }
}

TEST(GatheredState, NamesAnElementThatNoRankHolds) {
  std::map<std::string, Tensor> all;
  const auto errors = run_ranks(2, [&](Group& group) {
    Sharded model(group.rank() == 0 ? std::vector<std::int64_t>{0, 4} : std::vector<std::int64_t>{0, 5, 10},
                  group.rank());
    model.set_values();
    const GatheredState together(model.session, group);
  });
  EXPECT_THAT(errors,
              Each(AllOf(HasSubstr("do not make up \"w/Adam\""), HasSubstr("element 4 is on no rank"))));
}

TEST(GatheredState, NamesAnElementThatTwoRanksHold) {
  const auto errors = run_ranks(2, [&](Group& group) {
    Sharded model(group.rank() == 0 ? std::vector<std::int64_t>{0, 6} : std::vector<std::int64_t>{0, 5, 10},
                  group.rank());
    model.set_values();
    const GatheredState together(model.session, group);
  });
  EXPECT_THAT(errors, Each(HasSubstr("element 5 is on two ranks")));
}

TEST(GatheredState, TellsEveryRankOfAValueThatOneLacks) {
  const auto errors = run_ranks(3, [&](Group& group) {
    Sharded model({0, 3, 6, 10}, group.rank());
    if (group.rank() != 1) model.set_values();
    const GatheredState together(model.session, group);
  });
  EXPECT_THAT(errors, Each("Attempting to use uninitialized value w/shard/Adam (of rank 1)"));
}

TEST(GatheredState, EndsInAbortedErrorWhereARankRefuses) {
  const auto errors = run_ranks(3, [&](Group& group) {
    if (group.rank() == 2) return GatheredState::refuse("a bad sample", group);
    Sharded model({0, 3, 6, 10}, group.rank());
    model.set_values();
    EXPECT_THROW(GatheredState(model.session, group), AbortedError);
    throw AbortedError("as it should");
  });
  EXPECT_THAT(errors, ElementsAre("as it should", "as it should", ""));
}

// "w", and "w/error" with the rank as its value.
struct Compressed {
  explicit Compressed(bool with_step = true) {
    set_rank_state(graph, error, {.kind = RankState::Kind::own});
    if (with_step) s.add("TestGatheredStep", {});
  }
  void set_error(float value) {
    detail::write_variable(detail::storage_of(session, error), Tensor::of<float>({}, {value}));
  }
  float error_value() { return session.run(error.read()).value<float>(); }

  Graph graph;
  Scope s{graph};
  Variable error{s.named("w/error"), fill(s, DType::f32, {}, -1), {.trainable = false}};
  Session session{graph};
};

TEST(GatheredState, KeepsEachRanksOwnValueUnderItsRank) {
  std::map<std::string, float> found;
  const auto errors = run_ranks(3, [&](Group& group) {
    Compressed model;
    model.set_error(static_cast<float>(10 + group.rank()));
    const GatheredState together(model.session, group);
    if (group.rank() == 0)
      for (const auto& [name, tensor] : together.tensors()) found[name] = tensor.value<float>();
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_EQ(found, (std::map<std::string, float>{
                       {"w/error/rank_0", 10}, {"w/error/rank_1", 11}, {"w/error/rank_2", 12}}));
}

// The layout does not change: one short exchange tells whether all have a value.
TEST(GatheredState, ComparesNothingAgainWhereTheLayoutIsKnown) {
  const auto errors = run_ranks(3, [&](Group& group) {
    Sharded model({0, 3, 6, 10}, group.rank());
    const detail::RankLayout layout = detail::compare_rank_states(group, model.session);
    ASSERT_EQ(layout.size(), 1u);
    EXPECT_EQ(layout[0].ranges, (std::vector<ElementRange>{{0, 3}, {3, 3}, {6, 4}}));
    if (group.rank() == 1) return GatheredState::refuse("a bad sample", group);
    EXPECT_THROW(GatheredState(model.session, group, layout), AbortedError);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(GatheredState, IsOnTheRankThatSavesAlone) {
  run_ranks(2, [&](Group& group) {
    Compressed model;
    model.set_error(1);
    const GatheredState together(model.session, group);
    EXPECT_EQ(together.tensors().empty(), group.rank() != 0);
  });
}

// Fails the test at the first message.
class SilentGroup final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void broadcast(std::span<const Tensor>, int) override { ADD_FAILURE(); }
  std::string broadcast(const std::string& text, int) override { return ADD_FAILURE(), text; }
  std::vector<std::string> allgather(const std::string& text) override {
    ADD_FAILURE();
    return {text, text};
  }
};

TEST(GatheredState, SendsNothingWhereNoStateIsSpread) {
  SilentGroup group;
  Compressed alone(false);  // no step that the ranks share
  const GatheredState together(alone.session, group);
  EXPECT_FALSE(is_spread_over_ranks(alone.session, group));
  detail::scatter_checkpoint(group, alone.session, detail::compare_rank_states(group, alone.session),
                             "nowhere");
}

struct ScatteredCheckpoint : ::testing::Test {
  std::string written(const std::map<std::string, Tensor>& tensors) const {
    write_checkpoint(folder / "model.ckpt", tensors, {});
    return folder / "model.ckpt";
  }
  // Of all ranks.
  std::vector<float> errors_restored_from(const std::string& path, int ranks) const {
    std::vector<float> values(ranks);
    const auto errors = run_ranks(ranks, [&](Group& group) {
      Compressed model;
      if (group.rank() == 0) Saver(model.graph).restore(model.session, path);
      else detail::run_initializers(model.session, global_variables(model.graph));
      detail::scatter_checkpoint(group, model.session, detail::compare_rank_states(group, model.session),
                                 group.rank() == 0 ? std::optional(path) : std::nullopt);
      values[group.rank()] = model.error_value();
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
    return values;
  }

  const TemporaryDirectory folder;
};

TEST_F(ScatteredCheckpoint, GivesEachRankItsShardOfWhatAnyNumberOfRanksWrote) {
  std::map<std::string, Tensor> all;
  gather({0, 4, 4, 10}, all);
  const std::string path = written(all);
  for (const auto& begins :
       std::vector<std::vector<std::int64_t>>{{0, 9, 10}, {0, 5, 10, 10}, {0, 1, 2, 3, 10}}) {
    const auto errors = run_ranks(static_cast<int>(begins.size()) - 1, [&](Group& group) {
      Sharded model(begins, group.rank());
      detail::run_initializers(model.session, global_variables(model.graph));
      detail::scatter_checkpoint(group, model.session, detail::compare_rank_states(group, model.session),
                                 group.rank() == 0 ? std::optional(path) : std::nullopt);
      EXPECT_EQ(model.values(),
                numbers(static_cast<int>(begins[group.rank()]), static_cast<int>(begins[group.rank() + 1])));
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

TEST_F(ScatteredCheckpoint, FitsThePlainVariable) {
  std::map<std::string, Tensor> all;
  gather({0, 4, 4, 10}, all);
  Graph graph;
  const Scope s(graph);
  const Variable plain(s.named("w/Adam"), zeros(s, DType::f32, {2, 5}));
  Session session(graph);
  Saver(graph).restore(session, written(all));
  EXPECT_THAT(session.run(plain.read()).span<float>(), ::testing::ElementsAreArray(numbers(0, 10)));
}

TEST_F(ScatteredCheckpoint, OfOneRankHoldsItsOnlyShardAsTheWhole) {
  Sharded one({0, 10}, 0);
  one.set_values();
  const std::string path = Saver(one.graph).save(one.session, folder / "one");
  EXPECT_THAT(CheckpointReader(path).index().tensors, ElementsAre(Key("w/Adam")));
  Sharded again({0, 10}, 0);
  Saver(again.graph).restore(again.session, path);
  EXPECT_EQ(again.values(), numbers(0, 10));
}

TEST_F(ScatteredCheckpoint, LeavesRanksAsTheyAreWithoutACheckpoint) {
  const auto errors = run_ranks(2, [&](Group& group) {
    Compressed model;
    model.set_error(7);
    detail::scatter_checkpoint(group, model.session, detail::compare_rank_states(group, model.session), {});
    EXPECT_EQ(model.error_value(), 7);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_F(ScatteredCheckpoint, GivesEachRankItsOwnValueWhereAsManyWroteIt) {
  const std::string path =
      written({{"w/error/rank_0", Tensor::scalar(3.0f)}, {"w/error/rank_1", Tensor::scalar(4.0f)}});
  EXPECT_THAT(errors_restored_from(path, 2), ElementsAre(3, 4));
}

TEST_F(ScatteredCheckpoint, LetsOwnValuesStartAfreshWhereAnotherNumberOfRanksWroteThem) {
  const std::string path =
      written({{"w/error/rank_0", Tensor::scalar(3.0f)}, {"w/error/rank_1", Tensor::scalar(4.0f)}});
  EXPECT_THAT(errors_restored_from(path, 3), ElementsAre(-1, -1, -1));
  EXPECT_THAT(errors_restored_from(path, 1), ElementsAre(-1));
}

TEST_F(ScatteredCheckpoint, TakesAValueWithoutARankAsRankZeros) {
  EXPECT_THAT(errors_restored_from(written({{"w/error", Tensor::scalar(3.0f)}}), 2), ElementsAre(3, -1));
}

TEST_F(ScatteredCheckpoint, MustHoldTheWholeOfAShard) {
  Sharded model({0, 10}, 0);
  const std::string path = written({{"other", Tensor::scalar(3.0f)}});
  EXPECT_THAT([&] { Saver(model.graph).restore(model.session, path); },
              ::testing::ThrowsMessage<NotFoundError>(HasSubstr("Key w/Adam not found in checkpoint.")));
}

TEST_F(ScatteredCheckpoint, MustHoldAWholeOfTheRightShape) {
  Sharded model({0, 10}, 0);
  const std::string path = written({{"w/Adam", Tensor::zeros(DType::f32, {10})}});
  EXPECT_THAT([&] { Saver(model.graph).restore(model.session, path); },
              ::testing::ThrowsMessage<InvalidArgumentError>(HasSubstr("lhs shape= [2,5] rhs shape= [10]")));
}

TEST_F(ScatteredCheckpoint, HoldsNoScratch) {
  const auto make = [](Graph& graph) {
    const Scope s(graph);
    const Variable kept(s.named("kept"), ones(s, DType::f32, {2}));
    const Variable scratch(s.named("scratch"), fill(s, DType::f32, {3}, 5));
    set_rank_state(graph, scratch, {.kind = RankState::Kind::scratch});
    return scratch;
  };
  Graph graph;
  make(graph);
  Session session(graph);
  detail::run_initializers(session, global_variables(graph));
  const std::string path = Saver(graph).save(session, folder / "kept");
  EXPECT_THAT(CheckpointReader(path).index().tensors, ElementsAre(Key("kept")));
  Graph again;
  const Variable scratch = make(again);
  Session restored(again);
  Saver(again).restore(restored, path);
  EXPECT_THAT(restored.run(scratch.read()).span<float>(), ElementsAre(5, 5, 5));
}

}  // namespace
}  // namespace kolo
