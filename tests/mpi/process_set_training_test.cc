// Training over some of the job's ranks: DistributedOptimizerOptions::process_set, and what goes with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/hooks.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/hooks.h>
#include <kolo/optimizer/registry.h>
#include <kolo/optimizer/rules.h>

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

int last() { return size() - 1; }
// The last rank and the first, in this order: with two ranks all of them, with more some stay outside.
ProcessSet ends() { return ProcessSet::create(std::vector{last(), 0}); }
bool is_end() { return rank() == 0 || rank() == last(); }
// Even ranks, and odd ones.
ProcessSet own_half() { return ProcessSet::split(rank() % 2, rank()); }

Operation wrapped_sgd(Scope& s, const Output& loss, DistributedOptimizerOptions options, double rate = 1) {
  return DistributedOptimizer(std::make_unique<GradientDescentOptimizer>(rate), std::move(options))
      .minimize(s, loss);
}

// w, 0 at first, after one step of SGD(1) with this rank's gradient.
float after_one_step(float gradient, DistributedOptimizerOptions options) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), constant(s, 0.0f));
  const Operation step = wrapped_sgd(s, mul(s, w, constant(s, gradient)), std::move(options));
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  return session.run(w.read()).value<float>();
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return fmt::format("{}: {}", name(error.code()), error.what());
  }
  return "";
}

TEST(ProcessSetOptimizer, AveragesOverTheSetAndLeavesOthersTheirOwnGradients) {
  const float w = after_one_step(static_cast<float>(rank() + 1), {.process_set = ends()});
  EXPECT_EQ(w, is_end() ? -0.5f * static_cast<float>(1 + size()) : -static_cast<float>(rank() + 1));
}

TEST(ProcessSetOptimizer, DividesAPredividedAverageByTheSizeOfTheSet) {
  const float w =
      after_one_step(static_cast<float>(rank() + 1), {.gradient_predivide_factor = 4, .process_set = ends()});
  EXPECT_EQ(w, is_end() ? -0.5f * static_cast<float>(1 + size()) : -static_cast<float>(rank() + 1));
}

// Row 30 of the worked examples, between the ends.
TEST(ProcessSetOptimizer, CombinesByAdasumWithinTheSet) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), zeros(s, DType::f32, {2}));
  const float second = rank() == 0 ? 0 : 1;
  const Output gradient = constant(s, Tensor::of<float>({2}, {1, second}));
  const Operation step = wrapped_sgd(s, mul(s, w, gradient), {.op = ReduceOp::adasum, .process_set = ends()});
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  const Tensor value = session.run(w.read());
  if (is_end()) EXPECT_THAT(value.span<float>(), ElementsAre(-1.25f, -0.75f));
  else EXPECT_THAT(value.span<float>(), ElementsAre(-1, -1));
}

TEST(ProcessSetOptimizer, OfOneRankIsThePlainOptimizerBitForBit) {
  std::vector<ProcessSet> alone;
  for (int r = 0; r < size(); ++r) alone.push_back(ProcessSet::create(std::vector{r}));
  const float gradient = 0.1f * static_cast<float>(rank() + 1);
  // No cast: there is nobody to send f16 to.
  EXPECT_EQ(after_one_step(gradient, {.compression = fp16_compression(), .process_set = alone[rank()]}),
            -gradient);
  EXPECT_EQ(after_one_step(gradient, {.process_set = alone[(rank() + 1) % size()]}), -gradient);
}

TEST(ProcessSetOptimizer, GathersRowsWithinTheSet) {
  Graph graph;
  Scope s(graph);
  const Variable table(s.named("table"), zeros(s, DType::f32, {size() + 4, 1}));
  const Output rows = gather(s, table, constant(s, Tensor::of<std::int32_t>({1}, {rank()})));
  const Operation step = wrapped_sgd(s, rows, {.process_set = ends()});
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  const Tensor value = session.run(table.read());
  for (int row = 0; row < size() + 4; ++row) {
    const bool from_ends = is_end() && (row == 0 || row == last());
    const float expected = from_ends ? -0.5f : !is_end() && row == rank() ? -1.0f : 0.0f;
    EXPECT_EQ(value.data<float>()[row], expected) << "row " << row;
  }
}

TEST(ProcessSetOptimizer, ReducesWhatTheCallerSynchronizes) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), constant(s, 0.0f));
  DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0),
                                 {.op = ReduceOp::sum, .skip_synchronize = true, .process_set = ends()});
  auto pairs = optimizer.compute_gradients(s, mul(s, w, constant(s, static_cast<float>(rank() + 1))));
  pairs[0].gradient = square(s, pairs[0].gradient);  // of this rank's own
  const Operation step = optimizer.apply_gradients(s, optimizer.synchronize(s, pairs));
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  const auto squared = [](int rank) { return static_cast<float>((rank + 1) * (rank + 1)); };
  EXPECT_EQ(session.run(w.read()).value<float>(),
            is_end() ? -squared(0) - squared(last()) : -squared(rank()));
}

// Another model, other numbers of gradients, buckets and steps in either half.
TEST(ProcessSetOptimizer, TrainsTwoModelsAtOnceInDisjointSets) {
  const ProcessSet half = own_half();
  const bool even = rank() % 2 == 0;
  Graph graph;
  Scope s(graph);
  Output loss = constant(s, 0.0f);
  for (int i = 0; i < (even ? 5 : 2); ++i) {
    const Shape shape{100 + 10 * i};
    const Variable v(s.named("v"), zeros(s, DType::f32, shape));
    loss = add(s, loss, reduce_sum(s, mul(s, v, fill(s, DType::f32, shape, rank()))));
  }
  const Operation step =
      wrapped_sgd(s, loss, {.first_bucket_bytes = 4, .bucket_bytes = 4, .process_set = half});
  Session session(graph);
  session.run(global_variables_initializer(s));
  const int steps = even ? 60 : 35;
  for (int i = 0; i < steps; ++i) session.run(step);

  double mean = 0;
  for (const int member : half.ranks()) mean += member;
  mean /= half.size();
  for (const Variable& v : trainable_variables(graph))
    EXPECT_EQ(session.run(v.read()).span<float>().back(), static_cast<float>(-mean * steps));
  // The ranks have opened other channels of their own: what all share goes on.
  const ProcessSet all_backwards = [] {
    std::vector<int> ranks(size());
    for (int r = 0; r < size(); ++r) ranks[r] = last() - r;
    return ProcessSet::create(ranks);
  }();
  EXPECT_EQ(allgather_object("x", {.process_set = all_backwards}).size(), static_cast<std::size_t>(size()));
}

// A step with a schedule of all ranks and one of a half.
TEST(ProcessSetOptimizer, WorksBesideOneOfAllRanksInOneStep) {
  Graph graph;
  Scope s(graph);
  const Variable shared(s.named("shared"), constant(s, 0.0f)), own(s.named("own"), constant(s, 0.0f));
  const Output mine = constant(s, static_cast<float>(rank()));
  const ProcessSet half = own_half();
  const auto sgd_of = [&](const Variable& v, const ProcessSet& set) {
    DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0),
                                   {.op = ReduceOp::sum, .process_set = set});
    return optimizer.apply_gradients(s, optimizer.compute_gradients(s, mul(s, v, mine), std::vector{v}));
  };
  const Operation step = group(s, {sgd_of(shared, {}), sgd_of(own, half)});
  Session session(graph);
  session.run(global_variables_initializer(s));
  for (int i = 0; i < 20; ++i) session.run(step);
  const auto halves = half.ranks();
  EXPECT_EQ(session.run(shared.read()).value<float>(), -20.0f * static_cast<float>(size() * last()) / 2);
  EXPECT_EQ(session.run(own.read()).value<float>(),
            -20.0f * static_cast<float>(std::accumulate(halves.begin(), halves.end(), 0)));
}

TEST(ProcessSetOptimizer, NamesTheJobsRanksWhereTheSetDisagrees) {
  const ProcessSet set = ends();
  const std::int64_t elements = rank() == 0 ? 2 : 3;
  const std::string error = error_of([&] {
    Graph graph;
    Scope s(graph);
    const Variable w(s.named("w"), zeros(s, DType::f32, {elements}));
    const Operation step = wrapped_sgd(s, w, {.process_set = set});
    Session session(graph);
    session.run(global_variables_initializer(s));
    session.run(step);
  });
  if (!is_end()) EXPECT_EQ(error, "");
  else
    EXPECT_THAT(error,
                HasSubstr(fmt::format("Ranks disagree on the training step: gradient 0 is \"w\" [3] on "
                                      "rank {} but \"w\" [2] on rank 0",
                                      last())));
}

TEST(ProcessSetOptimizer, RefusesASetThatWasRemoved) {
  ProcessSet set = ends();
  const ProcessSet gone = set;
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), constant(s, 0.0f));
  const Operation step = wrapped_sgd(s, w, {.process_set = set});
  Session session(graph);
  session.run(global_variables_initializer(s));
  set.remove();
  EXPECT_THAT([&] { after_one_step(1, {.process_set = gone}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("there is no process set")));
  EXPECT_THAT([&] { session.run(step); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("there is no process set")));
}

TEST(ProcessSetBroadcast, GivesTheSetRootsValuesAndNobodyElse) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), fill(s, DType::f32, {3}, rank() + 1));
  const Operation initializer = global_variables_initializer(s);
  const ProcessSet set = ends();
  Session session(graph);
  session.run(initializer);
  BroadcastGlobalVariablesHook(last(), set).after_create_session(session);
  EXPECT_EQ(session.run(w.read()).span<float>()[2], static_cast<float>(is_end() ? last() + 1 : rank() + 1));
}

TEST(ProcessSetBroadcast, NamesARootOutsideTheSet) {
  if (size() < 3) GTEST_SKIP() << "nobody is outside";
  const ProcessSet set = ends();
  Graph graph;
  Session session(graph);
  const std::string error = error_of([&] { broadcast_variables(session, {}, 1, set); });
  if (is_end()) EXPECT_THAT(error, HasSubstr("root rank 1 is outside the process set of 2 ranks"));
  else EXPECT_EQ(error, "");
}

// loss = sum(w · x): a step takes the set's mean of x, which is the rank's number, from w.
struct LinearModel {
  explicit LinearModel(const ProcessSet& set) { train = wrapped_sgd(s, mul(s, w, x), {.process_set = set}); }
  Graph graph;
  Scope s{graph};
  Output x = constant(s, static_cast<float>(rank()));
  Variable w{s.named("w"), constant(s, 0.0f)};
  Operation train;
};

struct BeforeRun : SessionRunHook {
  explicit BeforeRun(std::function<void(RunContext&, int)> act) : act(std::move(act)) {}
  SessionRunArgs before_run(RunContext& context) override {
    act(context, run++);
    return {};
  }
  std::function<void(RunContext&, int)> act;
  int run = 0;
};

class MonitoredSessionOfASet : public testing::Test {
 protected:
  MonitoredSessionOfASet() { set_log_level(LogLevel::error); }
  // Trains to a stop; a rank without anybody to stop it: ten steps.
  std::int64_t train(const ProcessSet& set, std::function<void(RunContext&, int)> before_run) {
    LinearModel model(set);
    MonitoredTrainingSession sess(model.graph,
                                  {.hooks = {std::make_shared<BeforeRun>(std::move(before_run))}});
    for (int i = 0; i < 10 && !sess.should_stop(); ++i) sess.run(model.train);
    sess.close();
    return sess.global_step();
  }
};

TEST_F(MonitoredSessionOfASet, StopsTheSetTogetherAndNobodyElse) {
  const ProcessSet set = ends();
  const auto steps = train(set, [](RunContext& context, int run) {
    if (run == 3 && rank() == last()) context.request_stop();
  });
  EXPECT_EQ(steps, is_end() ? 4 : 10);
}

TEST_F(MonitoredSessionOfASet, EndsTheSetWithOneRanksData) {
  const ProcessSet set = ends();
  const auto steps = train(set, [](RunContext&, int run) {
    if (run == 2 && rank() == last()) throw OutOfRangeError("no more data");
  });
  EXPECT_EQ(steps, is_end() ? 2 : 10);
}

TEST_F(MonitoredSessionOfASet, EndsTheSetInAbortedErrorThatNamesTheJobsRank) {
  const ProcessSet set = ends();
  const std::string error = error_of([&] {
    train(set, [](RunContext&, int run) {
      if (run == 1 && rank() == last()) throw InvalidArgumentError("a bad sample");
    });
  });
  if (rank() == last()) EXPECT_EQ(error, "InvalidArgument: a bad sample");
  else if (rank() == 0)
    EXPECT_THAT(error, AllOf(HasSubstr("Aborted: "), HasSubstr(fmt::format("rank {} failed in step", last())),
                             HasSubstr("a bad sample")));
  else EXPECT_EQ(error, "");
}

TEST_F(MonitoredSessionOfASet, TrainsBothHalvesAtOnce) {
  const ProcessSet half = own_half();
  EXPECT_EQ(train(half,
                  [](RunContext& context, int run) {
                    if (run == (rank() % 2 == 0 ? 3 : 6)) context.request_stop();
                  }),
            rank() % 2 == 0 ? 4 : 7);
}

TEST_F(MonitoredSessionOfASet, SaysWhereARankOfTheSetHasNoTrainingStep) {
  const ProcessSet set = ends();
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), constant(s, 0.0f));
  get_or_create_global_step(s);
  if (rank() != 0) wrapped_sgd(s, w, {.process_set = set});
  EXPECT_THAT(error_of([&] { MonitoredTrainingSession sess(graph); }),
              HasSubstr(fmt::format("distributed optimizers over the ranks [0,{}] on rank 0 but 1 on rank {}",
                                    last(), last())));
}

// Where the optimizers of two sets meet in a rank, its end is the end of both.
TEST_F(MonitoredSessionOfASet, EndsAllRanksThatShareAScheduleWithTheOneThatHasNoMoreData) {
  if (size() < 3) GTEST_SKIP() << "two sets that overlap need three ranks";
  Graph graph;
  Scope s(graph);
  const Variable a(s.named("a"), constant(s, 0.0f)), b(s.named("b"), constant(s, 0.0f));
  const auto left = ProcessSet::create(std::vector{0, 1}), right = ProcessSet::create(std::vector{1, 2});
  const auto sgd_of = [&](const Variable& v, const ProcessSet& set) {
    DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0), {.process_set = set});
    return optimizer.apply_gradients(s, optimizer.compute_gradients(s, square(s, v), std::vector{v}));
  };
  const Operation step = group(s, {sgd_of(a, left), sgd_of(b, right)});
  get_or_create_global_step(s);
  const auto hook = std::make_shared<BeforeRun>([](RunContext&, int run) {
    if (run == 2 && rank() == 1) throw OutOfRangeError("no more data");
  });
  MonitoredTrainingSession sess(graph, {.hooks = {hook}});
  for (int i = 0; i < 10 && !sess.should_stop(); ++i) sess.run(step);
  sess.close();
  EXPECT_EQ(hook->run, rank() < 3 ? 3 : 10);
}

}  // namespace
}  // namespace kolo
