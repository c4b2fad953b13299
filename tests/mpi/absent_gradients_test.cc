// Gradients that some ranks have and others lack: declared, they are zeros where they lack.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <kolo/collectives/engine/process_set.h>
#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/registry.h>
#include <kolo/optimizer/rules.h>

namespace kolo {
namespace {

using testing::Each;
using testing::HasSubstr;

// A trunk that every rank uses, one head for even ranks and one for odd ones, and a variable that nobody
// uses. d loss / d trunk = 1 on every rank, d loss / d head = 2 where the rank has it.
struct TwoHeads {
  Output loss() { return loss_with(rank() % 2 == 0 ? even : odd); }
  Output loss_with(const Variable& head) {
    const Output used = reduce_sum(s, mul(s, head, fill(s, DType::f32, {}, 2)));
    return add(s, used, reduce_sum(s, trunk));
  }
  std::vector<Variable> heads() const { return {even, odd, unused}; }
  // Elements of v after `steps` steps.
  std::vector<float> trained(DistributedOptimizerOptions options, const Variable& v, int steps = 1) {
    DistributedOptimizer optimizer(make_optimizer("momentum", {.learning_rate = 1, .momentum = 0}),
                                   std::move(options));
    const Operation step = optimizer.minimize(s, loss());
    Session session(graph);
    session.run(global_variables_initializer(s));
    for (int i = 0; i < steps; ++i) session.run(step);
    const Tensor value = session.run(v.read());
    return {value.span<float>().begin(), value.span<float>().end()};
  }

  Graph graph;
  Scope s{graph};
  Variable even{s.named("even"), zeros(s, DType::f32, {3})};
  Variable trunk{s.named("trunk"), zeros(s, DType::f32, {5})};
  Variable odd{s.named("odd"), zeros(s, DType::f32, {4})};
  Variable unused{s.named("unused"), fill(s, DType::f32, {2}, 7)};
};

// Of SGD(1) from 0 where `ranks` of all have a gradient of 2.
float of_average(int ranks) { return -2.0f * static_cast<float>(ranks) / static_cast<float>(size()); }
int even_ranks() { return (size() + 1) / 2; }

TEST(AbsentGradient, CountsAsZeroInTheAverageWhereItWasDeclared) {
  TwoHeads a, b, c;
  EXPECT_THAT(a.trained({.may_be_absent = a.heads()}, a.even), Each(of_average(even_ranks())));
  EXPECT_THAT(b.trained({.may_be_absent = b.heads()}, b.odd), Each(of_average(size() - even_ranks())));
  EXPECT_THAT(c.trained({.may_be_absent = c.heads()}, c.trunk), Each(-1));
}

TEST(AbsentGradient, OfEveryRankLeavesTheVariableAlone) {
  TwoHeads model;
  DistributedOptimizer optimizer(make_optimizer("adam", {.learning_rate = 1}),
                                 {.may_be_absent = model.heads()});
  for (const GradientPair& pair : optimizer.compute_gradients(model.s, model.loss()))
    EXPECT_EQ(static_cast<bool>(pair.gradient),
              pair.variable != model.unused && (size() > 1 || pair.variable != model.odd))
        << pair.variable.name();
}

TEST(AbsentGradient, StaysZeroFromStepToStep) {
  TwoHeads model;
  EXPECT_THAT(model.trained({.may_be_absent = model.heads()}, model.even, 3),
              Each(3 * of_average(even_ranks())));
}

TEST(AbsentGradient, IsZeroUnderCompressionAndInSumsOfSeveralPassesToo) {
  TwoHeads compressed, summed;
  EXPECT_THAT(compressed.trained({.compression = fp16_compression(), .may_be_absent = compressed.heads()},
                                 compressed.even),
              Each(testing::FloatNear(of_average(even_ranks()), 2e-3f)));
  EXPECT_THAT(
      summed.trained({.backward_passes_per_step = 2, .may_be_absent = summed.heads()}, summed.even, 2),
      Each(2 * of_average(even_ranks())));
}

TEST(AbsentGradient, IsZeroWhereUpdatesAreSharded) {
  TwoHeads even, odd;
  EXPECT_THAT(even.trained({.may_be_absent = even.heads(), .sharded = true}, even.even, 2),
              Each(2 * of_average(even_ranks())));
  EXPECT_THAT(odd.trained({.may_be_absent = odd.heads(), .sharded = true}, odd.odd, 2),
              Each(2 * of_average(size() - even_ranks())));
}

TEST(AbsentGradient, OfRowsIsNoRows) {
  Graph graph;
  Scope s(graph);
  const Variable table(s.named("table"), zeros(s, DType::f32, {9, 2}));
  const Variable w(s.named("w"), zeros(s, DType::f32, {2}));
  Output loss = reduce_sum(s, w);
  if (rank() == 0)
    loss = add(s, loss, reduce_sum(s, gather(s, table, constant(s, Tensor::of<std::int64_t>({1}, {4})))));
  DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0), {.may_be_absent = {table}});
  const Operation step = optimizer.minimize(s, loss);
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  const Tensor value = session.run(table.read());
  for (int i = 0; i < 18; ++i)
    EXPECT_EQ(value.data<float>()[i], i / 2 == 4 ? -1 / static_cast<float>(size()) : 0) << "element " << i;
}

TEST(AbsentGradient, IsLookedForWithinTheProcessSet) {
  const ProcessSet half = ProcessSet::split(rank() % 2, rank());
  TwoHeads even, odd;  // of which a half uses one head alone
  EXPECT_THAT(even.trained({.process_set = half, .may_be_absent = even.heads()}, even.even),
              Each(rank() % 2 == 0 ? -2 : 0));
  EXPECT_THAT(odd.trained({.process_set = half, .may_be_absent = odd.heads()}, odd.odd),
              Each(rank() % 2 == 1 ? -2 : 0));
}

TEST(AbsentGradient, IsNamedBeforeTheFirstStepWhereItWasNotDeclared) {
  if (size() == 1) GTEST_SKIP() << "there is nobody to differ from";
  TwoHeads model;
  try {
    model.trained({}, model.trunk);
    FAIL() << "the step was run";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Ranks disagree on the training step: gradient"));
    EXPECT_THAT(error.what(), HasSubstr("\"even\""));
  }
}

// The branch decides while the step runs: the gradient of what only the other one uses is zeros.
TEST(AbsentGradient, NeedsNoDeclarationWhereABranchOfTheStepDecides) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), constant(s, 0.0f)), v(s.named("v"), constant(s, 0.0f));
  const Output takes = placeholder(s, DType::boolean, {});
  const Output loss = cond(
      s, takes, [&](const Scope& b) { return Outputs{mul(b, w, constant(b, 2.0f))}; },
      [&](const Scope& b) { return Outputs{mul(b, v, constant(b, 2.0f))}; })[0];
  const Operation step =
      DistributedOptimizer(std::make_unique<GradientDescentOptimizer>(1.0)).minimize(s, loss);
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step, {{takes, Tensor::scalar(rank() == 0)}});
  EXPECT_EQ(session.run(w.read()).value<float>(), of_average(1));
  session.run(step, {{takes, Tensor::scalar(true)}});
  EXPECT_EQ(session.run(w.read()).value<float>(), of_average(1) - 2);
  EXPECT_EQ(session.run(v.read()).value<float>(), of_average(size() - 1));
}

}  // namespace
}  // namespace kolo
