// What a monitored session promises about several ranks: one start, one end, one folder.
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/monitored_session.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <set>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/runtime/group.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>

#include "tests/core/training/temporary_directory.h"
#include "tests/mpi/callback_hook.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// loss = sum(w · x), so a step takes the ranks' mean of x from w.
struct LinearModel {
  LinearModel() {
    graph.set_seed(7);
    DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0f));
    train = optimizer.minimize(s, mul(s, w, x));
  }
  Feeds feeds() const { return {{x, Tensor::of<float>({2}, {1, static_cast<float>(rank())})}}; }

  Graph graph;
  Scope s{graph};
  Output x = placeholder(s, DType::f32, {2});
  Variable w{s.named("w"), random_uniform(s, DType::f32, {2})};
  Operation train;
};

// Distinct texts of all ranks: one if they say the same.
std::set<std::string> all_ranks_say(const std::string& text) {
  const auto all = world_group().allgather(text);
  return {all.begin(), all.end()};
}

class MonitoredSessionOfRanks : public testing::Test {
 protected:
  MonitoredSessionOfRanks() { set_log_level(LogLevel::error); }
  ~MonitoredSessionOfRanks() override { clear_stop_signal(); }

  bool is_last() const { return rank() == size() - 1; }
  // The others could not use any folder: that they need none is part of every test.
  std::string checkpoint_dir() const { return rank() == 0 ? folder_.path() : "/proc/none"; }
  MonitoredTrainingSessionOptions options(std::vector<std::shared_ptr<SessionRunHook>> hooks) {
    return {.checkpoint_dir = checkpoint_dir(), .save_checkpoint_steps = 1000, .hooks = std::move(hooks)};
  }
  // Steps until the session says stop; returns the global step at the end.
  std::int64_t train(LinearModel& model, std::vector<std::shared_ptr<SessionRunHook>> hooks) {
    MonitoredTrainingSession sess(model.graph, options(std::move(hooks)));
    while (!sess.should_stop()) sess.run(model.train, model.feeds());
    stopped_on_request_ = sess.stopped_on_request();
    sess.close();
    return sess.global_step();
  }
  // What `body` throws; "" if nothing.
  static std::string error_of(const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      return fmt::format("{}: {}", name(error.code()), error.what());
    }
    return "";
  }
  std::string newest_checkpoint() const {
    const auto names = list_checkpoints(folder_.path());
    return names.empty() ? "" : names.front();
  }

  TemporaryDirectory folder_;
  std::shared_ptr<CallbackHook> hook_ = std::make_shared<CallbackHook>();
  bool stopped_on_request_ = false;
};

TEST_F(MonitoredSessionOfRanks, StartsAllRanksWithTheChiefsValues) {
  LinearModel model;
  if (rank() != 0) model.graph.set_seed(100 + rank());  // their own initialisers would give other numbers
  MonitoredTrainingSession sess(model.graph);
  EXPECT_EQ(all_ranks_say(sess.run(model.w.read()).to_string()).size(), 1u);
}

TEST_F(MonitoredSessionOfRanks, StopsAllRanksExactlyAtTheLastStepAndSavesIt) {
  LinearModel model;
  EXPECT_EQ(train(model, {std::make_shared<StopAtStepHook>(3), hook_}), 3);
  EXPECT_EQ(hook_->run, 3);
  EXPECT_TRUE(hook_->ended);
  EXPECT_FALSE(stopped_on_request_);
  if (rank() == 0) {
    EXPECT_EQ(newest_checkpoint(), "model.ckpt-3");
  } else {
    EXPECT_THAT(folder_.names(), IsEmpty());
  }
}

TEST_F(MonitoredSessionOfRanks, GoesOnFromTheChiefsCheckpointOnAllRanks) {
  LinearModel model;
  Tensor w;
  hook_->after = [&](RunContext& context, int) { w = context.session().run(model.w.read()); };
  train(model, {std::make_shared<StopAtStepHook>(2), hook_});
  MonitoredTrainingSession sess(model.graph, options({}));
  EXPECT_EQ(sess.global_step(), 2);
  EXPECT_EQ(sess.run(model.w.read()).to_string(), w.to_string());
  EXPECT_EQ(all_ranks_say(w.to_string()).size(), 1u);
}

TEST_F(MonitoredSessionOfRanks, GoesOnWithEachRanksOwnDropout) {
  struct Model {
    Model() {
      graph.set_seed(7);
      DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0f));
      train = optimizer.minimize(s, mul(s, w, kept));
    }
    Graph graph;
    Scope s{graph};
    Output kept = dropout(s, ones(s, DType::f32, {8}), 0.5);
    Variable w{s.named("w"), zeros(s, DType::f32, {8})};
    Operation train;
  };
  const auto masks_of = [](int steps, const MonitoredTrainingSessionOptions& options) {
    Model model;
    MonitoredTrainingSession sess(model.graph, options);
    std::string masks;
    for (int step = 0; step < steps; ++step) masks += sess.run({model.train, model.kept})[1].to_string();
    sess.close();
    return masks;
  };
  const std::string undisturbed = masks_of(6, {});
  const std::string before = masks_of(3, options({})), after = masks_of(3, options({}));
  EXPECT_EQ(before + after, undisturbed);
  EXPECT_EQ(all_ranks_say(undisturbed).size(), static_cast<std::size_t>(size()));
}

TEST_F(MonitoredSessionOfRanks, GivesAllRanksTheChiefsSavedState) {
  LinearModel model;
  std::string position = fmt::format("[{}]", rank());
  const SavedState state{.name = "samples",
                         .save = [&] { return position; },
                         .restore = [&](const std::string& saved) { position = saved; }};
  MonitoredTrainingSession sess(model.graph, {.checkpoint_dir = checkpoint_dir(), .saved_state = {state}});
  EXPECT_EQ(position, "[0]");
}

TEST_F(MonitoredSessionOfRanks, StopsEverywhereAfterOneStepWhenOneRankIsSignalled) {
  LinearModel model;
  hook_->before = [&](RunContext&, int run) {
    if (run == 1 && is_last()) raise(SIGUSR1);
  };
  const std::int64_t step = train(model, {hook_});
  EXPECT_EQ(step, 2);
  EXPECT_TRUE(stopped_on_request_);
  if (rank() == 0) {
    EXPECT_EQ(newest_checkpoint(), fmt::format("model.ckpt-{}", step));
  }
}

TEST_F(MonitoredSessionOfRanks, StopsEverywhereWithTheNextStepWhenAHookOfOneRankAsks) {
  LinearModel model;
  hook_->after = [&](RunContext& context, int run) {
    if (run == 1 && is_last()) context.request_stop();
  };
  EXPECT_EQ(train(model, {hook_}), size() == 1 ? 2 : 3);
}

TEST_F(MonitoredSessionOfRanks, EndsQuietlyEverywhereAtTheEndOfOneRanksData) {
  LinearModel model;
  hook_->before = [&](RunContext&, int run) {
    if (run == 2 && is_last()) throw OutOfRangeError("no more data");
  };
  EXPECT_EQ(train(model, {hook_}), 2);
  EXPECT_TRUE(hook_->ended);
  if (rank() == 0) {
    EXPECT_EQ(newest_checkpoint(), "model.ckpt-2");
  }
}

// A source of samples inside the graph: fails with `error` where it is asked for call number `last`.
struct Source {
  std::function<void()> at_end;
  int calls = 0, last = 2;
} source;
const RegisterOp source_op(OpSchema("TestSource")
                               .input("x", {DType::f32})
                               .output("y")
                               .stateful()
                               .gradient([](Scope&, const Node&, Output dy) { return Outputs{dy}; }));
const RegisterKernel source_kernel("TestSource", "CPU", {DType::f32}, [](KernelContext& context) {
  if (source.calls++ == source.last && source.at_end) source.at_end();
  context.output(0).copy_from(context.input(0));
});

TEST_F(MonitoredSessionOfRanks, EndsQuietlyEverywhereWhenAKernelOfOneRankFindsTheEndOfTheData) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {2});
  const Variable w(s.named("w"), zeros(s, DType::f32, {2}));
  const Output loss = mul(s, w.read(), s.add("TestSource", {x}));
  const Operation train =
      DistributedOptimizer(std::make_unique<GradientDescentOptimizer>(1.0f)).minimize(s, loss);
  source = {};
  if (is_last()) source.at_end = [] { throw OutOfRangeError("no more files"); };
  MonitoredTrainingSession sess(graph, options({hook_}));
  while (!sess.should_stop()) sess.run(train, {{x, Tensor::of<float>({2}, {1, 3})}});
  EXPECT_EQ(sess.global_step(), 2);
  EXPECT_EQ(sess.session().run(w.read()).to_string(), Tensor::of<float>({2}, {-2, -6}).to_string());
  sess.close();
  EXPECT_TRUE(hook_->ended);
}

TEST_F(MonitoredSessionOfRanks, EndsQuietlyEverywhereWhenOneRankLeavesItsLoop) {
  LinearModel model;
  MonitoredTrainingSession sess(model.graph, options({hook_}));
  for (int step = 0; !sess.should_stop() && !(is_last() && step == 2); ++step)
    sess.run(model.train, model.feeds());
  sess.close();
  EXPECT_EQ(sess.global_step(), 2);
  EXPECT_TRUE(hook_->ended);
}

TEST_F(MonitoredSessionOfRanks, ClosesWithoutAnyStep) {
  LinearModel model;
  MonitoredTrainingSession sess(model.graph, options({hook_}));
  sess.close();
  EXPECT_TRUE(hook_->ended);
}

TEST_F(MonitoredSessionOfRanks, EndsTheOthersInAbortedErrorWhenAHookOfOneRankFails) {
  if (size() == 1) GTEST_SKIP() << "there is no other rank";
  LinearModel model;
  hook_->before = [&](RunContext&, int run) {
    if (run == 1 && is_last()) throw InvalidArgumentError("a bad sample");
  };
  const std::string error = error_of([&] { train(model, {hook_}); });
  if (is_last()) {
    EXPECT_EQ(error, "InvalidArgument: a bad sample");
  } else {
    EXPECT_THAT(error, AllOf(HasSubstr("Aborted: "), HasSubstr(fmt::format("rank {} failed", size() - 1)),
                             HasSubstr("a bad sample")));
  }
  EXPECT_FALSE(hook_->ended);
  if (rank() == 0) {
    EXPECT_EQ(newest_checkpoint(), "model.ckpt-0");
  }
}

// Runs a thread beside the loop of the last rank.
struct ThreadOfLastRank : SessionRunHook {
  explicit ThreadOfLastRank(std::function<void(Coordinator&)> of) : body(std::move(of)) {}
  void after_create_session(Session&, Coordinator& coordinator) override {
    if (rank() == size() - 1)
      coordinator.start("beside", [this, &coordinator](const std::stop_token&) { body(coordinator); });
  }
  std::function<void(Coordinator&)> body;
};

TEST_F(MonitoredSessionOfRanks, EndsTheOthersInAbortedErrorWhenAThreadOfOneRankFails) {
  if (size() == 1) GTEST_SKIP() << "there is no other rank";
  LinearModel model;
  const auto thread =
      std::make_shared<ThreadOfLastRank>([](Coordinator&) { throw InvalidArgumentError("of the thread"); });
  const std::string error = error_of([&] { train(model, {thread, hook_}); });
  if (is_last()) {
    EXPECT_EQ(error, "InvalidArgument: of the thread");
  } else {
    EXPECT_THAT(error, AllOf(HasSubstr("Aborted: "), HasSubstr(fmt::format("rank {} failed", size() - 1))));
  }
  EXPECT_FALSE(hook_->ended);
}

TEST_F(MonitoredSessionOfRanks, StopsEverywhereAfterOneStepWhenAThreadOfOneRankAsks) {
  LinearModel model;
  const auto thread =
      std::make_shared<ThreadOfLastRank>([](Coordinator& coordinator) { coordinator.request_stop(); });
  const std::int64_t last_step = train(model, {thread, hook_});
  EXPECT_EQ(all_ranks_say(std::to_string(last_step)).size(), 1u);
  EXPECT_TRUE(hook_->ended);
}

TEST_F(MonitoredSessionOfRanks, EndsTheOthersInAbortedErrorWhenOneRanksFeedDoesNotFit) {
  if (size() == 1) GTEST_SKIP() << "there is no other rank";
  LinearModel model;
  MonitoredTrainingSession sess(model.graph, options({hook_}));
  const std::string error = error_of([&] {
    sess.run(model.train, model.feeds());
    sess.run(model.train, is_last() ? Feeds{{model.x, Tensor::scalar(1.0f)}} : model.feeds());
  });
  EXPECT_THAT(error, HasSubstr(is_last() ? "InvalidArgument: " : "Aborted: "));
  EXPECT_TRUE(sess.should_stop());
  sess.close();
  EXPECT_FALSE(hook_->ended);
}

TEST_F(MonitoredSessionOfRanks, EndsTheOthersInAbortedErrorWhenAnExceptionLeavesOneRanksLoop) {
  if (size() == 1) GTEST_SKIP() << "there is no other rank";
  LinearModel model;
  const std::string error = error_of([&] {
    MonitoredTrainingSession sess(model.graph, options({hook_}));
    for (int step = 0; step < 4; ++step) {
      if (is_last() && step == 2) throw NotFoundError("of the user's own");
      sess.run(model.train, model.feeds());
    }
  });
  EXPECT_THAT(error, HasSubstr(is_last() ? "of the user's own" : "an exception left the training loop"));
  EXPECT_FALSE(hook_->ended);
}

TEST_F(MonitoredSessionOfRanks, TellsAllRanksWhatFailsOnTheChiefAtTheStart) {
  LinearModel model;
  if (rank() == 0) write_bytes(folder_ / "model.ckpt-5.safetensors", "cut");
  EXPECT_THAT(error_of([&] { train(model, {std::make_shared<StopAtStepHook>(1)}); }),
              AllOf(HasSubstr("DataLoss: "), HasSubstr("none of the 1 checkpoints"),
                    HasSubstr(rank() == 0 ? "" : "rank 0: ")));
}

TEST_F(MonitoredSessionOfRanks, NamesOnAllRanksAVariableThatDiffers) {
  if (size() == 1) GTEST_SKIP() << "there is no other rank";
  LinearModel model;
  const Variable extra(model.s.named("extra"), zeros(model.s, DType::f32, {is_last() ? 3 : 2}));
  EXPECT_THAT(
      error_of([&] { MonitoredTrainingSession{model.graph}; }),
      HasSubstr(fmt::format(
          "FailedPrecondition: Ranks disagree on the variables: \"extra\" is f32 [2] on rank 0 but f32 "
          "[3] on rank {}",
          size() - 1)));
}

TEST_F(MonitoredSessionOfRanks, NamesOnAllRanksTheGradientOfAVariableThatDiffers) {
  if (size() == 1) GTEST_SKIP() << "there is no other rank";
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("fc1/w"), zeros(s, DType::f32, {4, is_last() ? 5 : 6}));
  DistributedOptimizer(std::make_unique<GradientDescentOptimizer>(1.0f)).minimize(s, w.read());
  EXPECT_THAT(error_of([&] { MonitoredTrainingSession{graph}; }),
              HasSubstr(fmt::format("FailedPrecondition: Ranks disagree on the training step: gradient 0 is "
                                    "\"fc1/w\" [4,6] on rank 0 but \"fc1/w\" [4,5] on rank {}",
                                    size() - 1)));
}

TEST_F(MonitoredSessionOfRanks, NamesOnAllRanksATrainingStepThatDiffers) {
  if (size() == 1) GTEST_SKIP() << "there is no other rank";
  LinearModel model;
  const Variable a(model.s.named("a"), zeros(model.s, DType::f32, {2}));
  const Variable b(model.s.named("b"), zeros(model.s, DType::f32, {3}));
  DistributedOptimizer second(std::make_unique<GradientDescentOptimizer>(1.0f));
  const std::vector<Variable> variables = {is_last() ? b : a};
  second.minimize(model.s, variables[0].read(), {.variables = variables});
  EXPECT_THAT(error_of([&] { MonitoredTrainingSession{model.graph}; }),
              AllOf(HasSubstr("FailedPrecondition: Ranks disagree on the training step"), HasSubstr("\"a"),
                    HasSubstr("\"b")));
}

TEST_F(MonitoredSessionOfRanks, SaysWhereOneRankHasNoDistributedTrainingStep) {
  if (size() == 1) GTEST_SKIP() << "there is no other rank";
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), zeros(s, DType::f32, {2}));
  if (is_last()) GradientDescentOptimizer(1.0f).minimize(s, w.read());
  else DistributedOptimizer(std::make_unique<GradientDescentOptimizer>(1.0f)).minimize(s, w.read());
  EXPECT_THAT(error_of([&] { MonitoredTrainingSession{graph}; }),
              HasSubstr("Ranks disagree on the training step"));
}

}  // namespace
}  // namespace kolo
