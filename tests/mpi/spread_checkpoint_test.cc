// Checkpoints of state that each rank has of its own: residuals of compression, sums of passes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/job/mpi_group.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/rules.h>
#include <tests/mpi/spread_checkpoint.h>

namespace kolo {
namespace {

using testing::ElementsAre;

class Residuals : public SpreadCheckpoint, public testing::WithParamInterface<std::string> {
 protected:
  static DistributedOptimizerOptions compressed() {
    return {.compression = GetParam() == "topk" ? topk_compression(0.1) : powersgd_compression(1)};
  }
};
INSTANTIATE_TEST_SUITE_P(Of, Residuals, testing::Values("topk", "powersgd"),
                         [](const auto& test) { return test.param; });

TEST_P(Residuals, AreTheSameBitsOnEachRankAfterARestore) {
  Training first(compressed());
  const State saved = train(first, options(), 4);
  Training second(compressed());
  MonitoredTrainingSession session(second.graph, options());
  EXPECT_EQ(second.state(session.session()), saved);
}

TEST_P(Residuals, GoOnAsWithoutAnInterruptionWhenStepsAreCounted) {
  Training training(compressed());
  // Nothing is saved at the end: the loop is left by an exception.
  EXPECT_ANY_THROW(train(training, options(3), kSteps, [&](MonitoredTrainingSession& session) {
    if (session.global_step() == 8) throw CancelledError("of the user's own");
  }));
  if (rank() == 0) {
    EXPECT_EQ(newest_checkpoint(), "model.ckpt-6");
  }
  EXPECT_EQ(continued(compressed(), 6), uninterrupted(compressed()));
}

TEST_P(Residuals, GoOnAsWithoutAnInterruptionWhenSecondsAreCounted) {
  Training training(compressed());
  MonitoredTrainingSessionOptions each_step = options({});
  each_step.save_checkpoint_secs = 1e-6;
  EXPECT_ANY_THROW(train(training, each_step, kSteps, [&](MonitoredTrainingSession& session) {
    if (session.global_step() == 7) throw CancelledError("of the user's own");
  }));
  if (rank() == 0) {
    EXPECT_EQ(newest_checkpoint(), "model.ckpt-7");
  }
  EXPECT_EQ(continued(compressed(), 7), uninterrupted(compressed()));
}

TEST_P(Residuals, GoOnAsWithoutAnInterruptionAfterASignal) {
  Training training(compressed());
  MonitoredTrainingSessionOptions signalled = options();
  signalled.hooks = {std::make_shared<CallbackHook>([&](RunContext&, int run) {
    if (run == 4 && is_last()) raise(SIGUSR1);
  })};
  train(training, signalled, kSteps);
  clear_stop_signal();
  EXPECT_EQ(continued(compressed(), 5), uninterrupted(compressed()));
}

TEST_P(Residuals, GoOnAsWithoutAnInterruptionAfterTheEndOfOneRanksData) {
  Training training(compressed());
  MonitoredTrainingSessionOptions ending = options();
  ending.hooks = {std::make_shared<CallbackHook>([&](RunContext&, int run) {
    if (run == 4 && is_last()) throw OutOfRangeError("no more data");
  })};
  train(training, ending, kSteps);
  EXPECT_EQ(continued(compressed(), 4), uninterrupted(compressed()));
}

TEST_F(SpreadCheckpoint, OfEqualStateIsTheSameBytes) {
  std::vector<std::string> files;
  for (int time = 0; time < 2; ++time) {
    Training training({.compression = topk_compression(0.1)});
    const TemporaryDirectory folder;
    MonitoredTrainingSessionOptions all = options();
    if (rank() == 0) all.checkpoint_dir = folder.path();
    train(training, all, 3);
    if (rank() != 0) continue;
    files.push_back(bytes_of_file(folder / "model.ckpt-3.safetensors") +
                    bytes_of_file(folder / "model.ckpt-3.index.json"));
  }
  if (rank() == 0) {
    EXPECT_EQ(files[0], files[1]);
  }
}

TEST_F(SpreadCheckpoint, KeepsEachRanksSumOfHalfAnUpdate) {
  const DistributedOptimizerOptions two_passes = {.backward_passes_per_step = 2};
  const auto run = [&](Training& training, const MonitoredTrainingSessionOptions& options, int begin,
                       int end) {
    MonitoredTrainingSession session(training.graph, options);
    for (int pass = begin; pass < end; ++pass)
      session.run({training.train}, {{training.gradient, gradient_of(pass)}});
    State state = training.state(session.session());
    session.close();
    return state;
  };
  Training whole(two_passes), first(two_passes), second(two_passes);
  const State expected = run(whole, {}, 0, 6);
  run(first, options(), 0, 3);
  EXPECT_EQ(run(second, options(), 3, 6), expected);
}

// A step whose only reduction is of rows: the requests travel with their number.
TEST_F(SpreadCheckpoint, ComesAfterAStepThatReducesRowsAlone) {
  Graph graph;
  Scope s(graph);
  const Variable table(s.named("table"), zeros(s, DType::f32, {50, 2}));
  const Variable own(s.named("own"), zeros(s, DType::f32, {}), {.trainable = false});
  set_rank_state(graph, own, {.kind = RankState::Kind::own});
  DistributedOptimizer optimizer(std::make_unique<MomentumOptimizer>(0.1f, 0.9f));
  const Operation train =
      group(s, {optimizer.minimize(s, gather(s, table, constant(s, Tensor::of<std::int32_t>({1}, {3})))),
                assign_add(s, own, fill(s, DType::f32, {}, rank() + 1))});
  EXPECT_ANY_THROW({
    MonitoredTrainingSession session(graph, options(2));
    for (int step = 0; step < 3; ++step) session.run(train);
    throw CancelledError("of the user's own");
  });
  MonitoredTrainingSession session(graph, options());
  EXPECT_EQ(session.global_step(), 2);
  EXPECT_EQ(session.run(own.read()).value<float>(), static_cast<float>(2 * (rank() + 1)));
}

// What goes through the group of all ranks.
class CountingGroup final : public Group {
 public:
  CountingGroup() : group_(detail::current_runtime()) {}
  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  void broadcast(std::span<const Tensor> tensors, int root) override {
    ++calls;
    group_.broadcast(tensors, root);
  }
  void gather(const Tensor& own, std::span<const Tensor> parts, int root) override {
    ++calls;
    group_.gather(own, parts, root);
  }
  void scatter(std::span<const Tensor> parts, const Tensor& own, int root) override {
    ++calls;
    group_.scatter(parts, own, root);
  }
  std::string broadcast(const std::string& text, int root) override {
    ++calls;
    return group_.broadcast(text, root);
  }
  std::vector<std::string> allgather(const std::string& text) override {
    ++calls;
    return group_.allgather(text);
  }
  int calls = 0;

 private:
  detail::MpiGroup group_;
};

class Messages : public SpreadCheckpoint {
 protected:
  void SetUp() override {
    if (size() == 1) GTEST_SKIP() << "one rank sends none";
    auto group = std::make_unique<CountingGroup>();
    counting_ = group.get();
    set_world_group(std::move(group));
  }
  void TearDown() override {
    if (counting_ != nullptr) set_world_group(std::make_unique<detail::MpiGroup>(detail::current_runtime()));
  }
  // Calls during steps 1 … 6 and the end, of which 2, 4 and 6 are saved.
  std::vector<int> calls_of(const DistributedOptimizerOptions& optimizer) {
    Training training(optimizer);
    std::vector<int> calls;
    {
      MonitoredTrainingSession session(training.graph, options(2));
      for (int step = 0; step < 6; ++step) {
        const int before = counting_->calls;
        session.run({training.train}, {{training.gradient, gradient_of(step)}});
        calls.push_back(counting_->calls - before);
      }
      calls.push_back(-counting_->calls);
      session.close();
    }
    calls.back() += counting_->calls;
    return calls;
  }

  CountingGroup* counting_ = nullptr;
};

TEST_F(Messages, AreNoneBesideTheStepsWhereNoStateIsSpread) {
  EXPECT_THAT(calls_of({}), ElementsAre(0, 0, 0, 0, 0, 0, 0));
}

TEST_F(Messages, AreNoneBesideTheStepsThatAreNotSavedWhereStateIsSpread) {
  const auto calls = calls_of({.compression = topk_compression(0.1)});
  EXPECT_EQ(calls[0] + calls[2] + calls[4], 0);
  EXPECT_GT(calls[1], 0);
  EXPECT_THAT(calls, ElementsAre(0, calls[1], 0, calls[1], 0, calls[1], calls[1]));
}

}  // namespace
}  // namespace kolo
