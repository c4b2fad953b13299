// Rows 35 and 36 of the worked examples, and what all ranks must share.
#include <kolo/optimizer/distributed_optimizer.h>

#include <gmock/gmock.h>

#include <kolo/collectives/graph/group_ops.h>
#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/registry.h>
#include <tests/core/test_ops.h>

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// w after one step of SGD(0.1) from 1, with a gradient of 2, 4, 6, … on ranks 0, 1, 2, …
float after_one_step(DistributedOptimizerOptions options) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), constant(s, 1.0f));
  const Output factor = constant(s, 2.0f * static_cast<float>(rank() + 1));
  DistributedOptimizer optimizer(make_optimizer("sgd", {.learning_rate = 0.1}), options);
  const Operation step = optimizer.minimize(s, mul(s, w, factor));
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  return session.run(w.read()).value<float>();
}

TEST(DistributedOptimizer, AppliesTheAverageOfAllRanksGradients) {
  // The average of 2, 4, …, 2R is R + 1.
  EXPECT_NEAR(after_one_step({}), 1 - 0.1 * (size() + 1), 1e-6);
}

TEST(DistributedOptimizer, AppliesTheSumOfAllRanksGradientsWhereAsked) {
  EXPECT_NEAR(after_one_step({.op = ReduceOp::sum}), 1 - 0.1 * size() * (size() + 1), 1e-6);
}

// Variables of several sizes, pulled towards other numbers on each rank; their bytes after four steps.
// fetches: whether this rank looks at the reduced gradients.
std::string trained_bytes(DistributedOptimizerOptions options, const std::string& device = "/cpu:0",
                          bool fetches = false) {
  Graph graph;
  Scope s = Scope(graph).device(device);
  const double mine = 0.1 * (rank() + 1);
  DistributedOptimizer optimizer(make_optimizer("adam", {.learning_rate = 0.01}), options);
  Output loss = constant(s, 0.0f);
  for (const std::int64_t elements : {3, 1000, 1, 257}) {
    const Variable v(s.named("v"), ones(s, DType::f32, {elements}));
    const Output distance = sub(s, v, fill(s, DType::f32, {elements}, mine));
    loss = add(s, loss, reduce_sum(s, square(s, distance)));
  }
  const auto pairs = optimizer.compute_gradients(s, loss);
  const Operation step = optimizer.apply_gradients(s, pairs);
  SessionConfig config;
  config.virtual_gpus = {{.total_bytes = std::int64_t{1} << 30}};
  Session session(graph, config);
  session.run(global_variables_initializer(s));
  for (int i = 0; i < 4; ++i) {
    if (fetches) session.run({step, pairs[1].gradient});
    else session.run(step);
  }
  std::string bytes;
  for (const Variable& variable : trainable_variables(graph)) {
    const Tensor value = session.run(variable.read());
    bytes.append(reinterpret_cast<const char*>(value.raw()), value.bytes());
  }
  return bytes;
}

TEST(DistributedOptimizer, LeavesTheSameBitsOnAllRanks) {
  const std::string mine = trained_bytes({});
  for (const std::string& theirs : world_group().allgather(mine)) EXPECT_EQ(theirs, mine);
}

// Reduced gradients, or those of all ranks where they lie; one rank that looks at a gradient decides for all.
TEST(DistributedOptimizer, GivesTheSameBitsWhetherGradientsAreLookedAtOrNot) {
  const std::string read_at_once = trained_bytes({});
  EXPECT_EQ(trained_bytes({}, "/cpu:0", true), read_at_once);
  EXPECT_EQ(trained_bytes({}, "/cpu:0", rank() == 0), read_at_once);
}

// Gradients come from the GPU into buckets in the host's memory, and go back to it from there.
TEST(DistributedOptimizer, GivesTheBitsOfTheCpuWhereGpusMakeTheGradients) {
  EXPECT_EQ(trained_bytes({}, "/gpu:0"), trained_bytes({}));
}

// Rank 0 fails in the third call of `behind`, and all others hear of it; how often it was called here.
int calls_until_rank_0_fails(Session& session, Output behind) {
  int calls = 0;
  testing::on_call = [&](std::int64_t) {
    if (++calls == 3 && rank() == 0) throw DataLossError("bad luck");
  };
  const auto train = [&] {
    for (int i = 0; i < 10; ++i) session.run(Operation(behind.node));
  };
  if (rank() == 0) EXPECT_THAT(train, ThrowsMessage<DataLossError>(HasSubstr("bad luck")));
  else EXPECT_THAT(train, ThrowsMessage<AbortedError>(HasSubstr("rank 0 failed")));
  testing::on_call = [](std::int64_t) {};
  return calls;
}

// A device that runs ahead tells of an error when the step is over, and every bucket with it.
TEST(DistributedOptimizer, TellsTheOthersOfAGpuThatFailsBehindTheReductions) {
  if (size() == 1) GTEST_SKIP() << "nobody is to be told";
  Graph graph;
  Scope s = Scope(graph).device("/gpu:0");
  const Variable w(s.named("w"), constant(s, 1.0f));
  DistributedOptimizer optimizer(make_optimizer("sgd", {.learning_rate = 0.1}));
  const Operation step = optimizer.minimize(s, square(s, w));
  const Output behind = testing::call(s.control_dependencies({step}), 7);
  SessionConfig config;
  config.virtual_gpus = {{.total_bytes = std::int64_t{1} << 30}};
  Session session(graph, config);
  session.run(global_variables_initializer(s));
  calls_until_rank_0_fails(session, behind);
}

// Behind gradients that were read where they lie, one bucket or several: in the order that the others expect.
void expect_all_to_hear_of_a_failure_behind_the_step(const DistributedOptimizerOptions& options) {
  if (size() == 1) GTEST_SKIP() << "nobody is to be told";
  Graph graph;
  Scope s(graph);
  Output loss = constant(s, 0.0f);
  for (int i = 0; i < 3; ++i)
    loss = add(s, loss, reduce_sum(s, square(s, Variable(s.named("v"), ones(s, DType::f32, {3000})))));
  DistributedOptimizer optimizer(make_optimizer("sgd", {.learning_rate = 0.1}), options);
  const Operation step = optimizer.minimize(s, loss);
  const Output behind = testing::call(s.control_dependencies({step}), 7);
  Session session(graph);
  session.run(global_variables_initializer(s));
  EXPECT_LE(calls_until_rank_0_fails(session, behind), 4);
}

TEST(DistributedOptimizer, TellsTheOthersOfAFailureBehindOneBucket) {
  expect_all_to_hear_of_a_failure_behind_the_step({});
}
TEST(DistributedOptimizer, TellsTheOthersOfAFailureBehindSeveralBuckets) {
  expect_all_to_hear_of_a_failure_behind_the_step({.first_bucket_bytes = 12000, .bucket_bytes = 12000});
}

TEST(DistributedOptimizer, GivesTheSameBitsHoweverGradientsAreBucketed) {
  // Every gradient alone, against all in one bucket; a sum of two numbers has one rounding in whatever order.
  if (size() > 2) GTEST_SKIP() << "the order of more than two summands depends on their place in the bucket";
  EXPECT_EQ(trained_bytes({.first_bucket_bytes = 4, .bucket_bytes = 4}), trained_bytes({}));
}

// Each rank uses another row of a table; after one step of SGD(0.1) from ones.
TEST(DistributedOptimizer, AveragesGradientsOfDifferentRows) {
  Graph graph;
  Scope s(graph);
  const Variable table(s.named("table"), ones(s, DType::f32, {size() + 1, 2}));
  const Output rows = gather(s, table, constant(s, Tensor::of<std::int32_t>({2}, {rank(), rank()})));
  DistributedOptimizer optimizer(make_optimizer("sgd", {.learning_rate = 0.1}));
  const Operation step = optimizer.minimize(s, rows);
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  const Tensor value = session.run(table.read());
  for (std::int64_t i = 0; i < value.elements(); ++i) {
    const double gradient = i < 2 * size() ? 2.0 / size() : 0;  // both of a rank's rows are the same
    EXPECT_NEAR(value.data<float>()[i], 1 - 0.1 * gradient, 1e-6) << "element " << i;
  }
}

TEST(GroupAllreduce, RefusesSeveralRanksWhereItWasBuiltForOne) {
  if (size() == 1) GTEST_SKIP() << "one rank is what it was built for";
  Graph graph;
  Scope s(graph);
  const Output reduced = group_allreduce(s, {constant(s, 1.0f)}, {"a"}, {.of_one_rank = {"table"}}).at(0);
  Session session(graph);
  try {
    session.run(reduced);
    FAIL() << "the step was run";
  } catch (const FailedPreconditionError& error) {
    EXPECT_NE(std::string(error.what()).find("the gradient of \"table\" would not be reduced"),
              std::string::npos)
        << error.what();
  }
}

TEST(GroupAllreduce, IsRefusedInTheBodyOfALoop) {
  if (size() == 1) GTEST_SKIP() << "one rank reduces nothing";
  Graph graph;
  const Scope s(graph);
  const Outputs finals = while_loop(
      s, [](const Scope& c, const Outputs& v) { return less(c, v[0], constant(c, 3.0f)); },
      [](const Scope& b, const Outputs& v) {
        return group_allreduce(b, {add(b, v[0], constant(b, 1.0f))}, {"a"});
      },
      {constant(s, 0.0f)});
  Session session(graph);
  EXPECT_THAT([&] { session.run(finals[0]); },
              ThrowsMessage<UnimplementedError>(HasSubstr("reduces over the ranks in its body")));
}

}  // namespace
}  // namespace kolo
