// Whatever the passes do to a step, what it fetches and what it leaves in its variables stay the same: on
// small graphs made at random.
#include <kolo/core/passes/pipeline.h>

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <random>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/passes/placed_step.h"

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kRows = 4, kCols = 6;

// A graph of some 40 nodes, most of them [4,6], with what to fetch of it and what to feed.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {
    graph.set_seed(static_cast<std::int64_t>(seed) + 1);
    values_.push_back(placeholder(s, DType::f32, {kRows, kCols}));
    feeds.push_back({values_[0], numbers({kRows, kCols})});
    for (int i = 0; i < 2; ++i) variables.emplace_back(s, constant(s, numbers({kRows, kCols})));
    for (const Variable& v : variables) values_.push_back(v.read());
    for (int i = 0; i < 40; ++i) add_node();
    for (int i = 0; i < 4; ++i) fetches.push_back(pick());
    for (const Operation& update : updates_)
      if (below(2) == 0) fetches.push_back(update);
    // Any tensor may be fed; not one that is fetched, which would be dull.
    if (below(3) == 0) feeds.push_back({values_[values_.size() / 2], numbers({kRows, kCols})});
    if (feeds.size() == 2 && feeds[1].first == feeds[0].first) feeds.pop_back();
  }

  Graph graph;
  Scope s{graph};
  std::vector<Variable> variables;
  std::vector<Fetch> fetches;
  Feeds feeds;

 private:
  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  // Of the last ones rather, so that chains form.
  Output pick() {
    const int count = static_cast<int>(values_.size());
    return values_[below(2) == 0 ? below(count) : std::max(0, count - 1 - below(3))];
  }
  Tensor numbers(const Shape& shape) {
    constexpr float kChoice[] = {0, -0.0f, 1, -1, 0.5f, -2, 3.25f, 1e-3f};
    Tensor tensor(DType::f32, shape);
    for (float& element : tensor.span<float>()) element = kChoice[below(8)];
    return tensor;
  }
  // Broadcast against [4,6]; often what arithmetic can do without.
  Output small() {
    const Shape shapes[] = {{}, {kCols}, {kRows, 1}, {1, kCols}, {1}};
    const Shape shape = shapes[below(5)];
    switch (below(4)) {
      case 0: return ones(s, DType::f32, shape);
      case 1: return fill(s, DType::f32, shape, below(2) == 0 ? 0.0 : -0.0);
      default: return constant(s, numbers(shape));
    }
  }

  void add_node() {
    // A placeholder cannot be waited for: it is not there to be run.
    const Output before = pick();
    const Scope waiting = below(6) == 0 && before != values_[0] ? s.control_dependencies({before}) : s;
    switch (below(12)) {
      case 0:
      case 1:
      case 2: return keep(unary(waiting));
      case 3:
      case 4: return keep(binary(waiting, pick(), pick()));
      case 5:
        return keep(below(2) == 0 ? binary(waiting, pick(), small()) : binary(waiting, small(), pick()));
      case 6: return keep(add_n(waiting, Outputs(static_cast<std::size_t>(1 + below(3)), pick())));
      case 7: return keep(matmul(waiting, pick(), constant(s, numbers({kCols, kCols}))));
      case 8: return keep(there_and_back(waiting));
      case 9: return keep(bias_add(waiting, pick(), constant(s, numbers({kCols}))));
      case 10: return keep(random_uniform(waiting, DType::f32, {kRows, kCols}, -1, 1));
      default: return update(waiting);
    }
  }
  void keep(Output value) { values_.push_back(value); }

  Output unary(const Scope& at) {
    constexpr Output (*kOps[])(const Scope&, Output) = {
        neg, abs, square, relu, exp, tanh, sign, sigmoid, floor, identity, stop_gradient, zeros_like};
    return kOps[below(12)](at, pick());
  }
  Output binary(const Scope& at, Output a, Output b) {
    constexpr Output (*kOps[])(const Scope&, Output, Output) = {add, sub, mul, div, maximum, minimum};
    return kOps[below(6)](at, a, b);
  }
  Output there_and_back(const Scope& at) {
    if (below(2) == 0) return transpose(at, transpose(s, pick(), {1, 0}), {1, 0});
    return reshape(at, reshape(s, pick(), {kCols, kRows}), {kRows, kCols});
  }
  void update(const Scope& at) {
    const Output result = assign_add(at, variables[static_cast<std::size_t>(below(2))], pick());
    updates_.push_back(result);
    if (below(2) == 0) keep(result);
  }

  std::mt19937 random_;
  Outputs values_;
  std::vector<Operation> updates_;
};

// Equal bits; which NaN it is, is left open.
bool same(const Tensor& a, const Tensor& b) {
  if (static_cast<bool>(a) != static_cast<bool>(b)) return false;
  if (!a) return true;
  if (a.shape() != b.shape()) return false;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const float x = a.data<float>()[i], y = b.data<float>()[i];
    if (!(std::isnan(x) && std::isnan(y)) && std::memcmp(&x, &y, sizeof x) != 0) return false;
  }
  return true;
}

// Everything that two runs fetch, and the variables behind them.
std::vector<Tensor> outcome(RandomGraph& made, const GraphOptions& options, int threads) {
  Session session(made.graph, {.inter_op_parallelism_threads = threads, .graph_options = options});
  for (const Variable& v : made.variables) session.run(v.initializer());
  std::vector<Tensor> all;
  for (int run = 0; run < 2; ++run)
    for (Tensor& value : session.run(made.fetches, made.feeds)) all.push_back(std::move(value));
  for (const Variable& v : made.variables) all.push_back(session.run(v.read()));
  return all;
}

void expect_same_outcomes(const GraphOptions& options, int threads) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    RandomGraph made(seed);
    const auto expected = outcome(made, {.optimizer_level = OptimizerLevel::l0}, 1);
    const auto found = outcome(made, options, threads);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_TRUE(same(found[i], expected[i]))
          << "graph " << seed << ", value " << i << ": " << found[i].to_string(24) << " instead of "
          << expected[i].to_string(24);
  }
}

TEST(GraphPasses, FoldingChangesNoResult) { expect_same_outcomes(only("fold_constants"), 1); }
TEST(GraphPasses, SimplifyingChangesNoResult) { expect_same_outcomes(only("simplify"), 1); }
TEST(GraphPasses, MergingChangesNoResult) { expect_same_outcomes(only("merge_common"), 1); }
TEST(GraphPasses, FusingChangesNoResult) { expect_same_outcomes(only("fuse_elementwise"), 1); }
TEST(GraphPasses, TogetherChangeNoResult) { expect_same_outcomes({}, 1); }
TEST(GraphPasses, TogetherChangeNoResultOnTwoThreads) { expect_same_outcomes({}, 2); }

TEST(GraphPasses, LeaveTheStepAloneAtLevelZero) {
  Graph graph;
  const Scope s(graph);
  const Output y = neg(s, neg(s, constant(s, 1.0f)));
  StepGraph step = placed_step({y});
  rewrite(step, {.optimizer_level = OptimizerLevel::l0});
  EXPECT_THAT(ops_of(step), ElementsAre("Const", "Neg", "Neg"));
}

TEST(GraphPasses, KeepOperationsThatWereAskedFor) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s, DType::f32, {2});
  StepGraph step = placed_step({Operation(neg(s, x))});
  rewrite(step, {});
  EXPECT_THAT(ops_of(step), ElementsAre("Placeholder", "Neg"));
}

TEST(GraphPasses, AreNamedInTheErrorForOneThatThereIsNot) {
  Graph graph;
  EXPECT_THAT(([&] { Session session(graph, {.graph_options = {.disabled_passes = {"simplfy"}}}); }),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("did you mean \"simplify\"?")));
}

void does_nothing(StepGraph&, PassContext&) {}

TEST(Pipeline, RefusesAPassForAPlaceThatTheListLacks) {
  EXPECT_THAT([] { RegisterPass("nowhere", does_nothing); },
              ThrowsMessage<InternalError>(HasSubstr("no place \"nowhere\"")));
  // Places that are kolo's own are not for others.
  EXPECT_THAT([] { RegisterPass("order_updates", does_nothing); },
              ThrowsMessage<InternalError>(HasSubstr("no place \"order_updates\"")));
}

TEST(Pipeline, RefusesASecondPassForAPlaceAndNamesBoth) {
  EXPECT_THAT(
      [] { RegisterPass("bucket", does_nothing); },
      ThrowsMessage<InternalError>(AllOf(HasSubstr("\"bucket\" is registered twice"),
                                         HasSubstr("bucket_pass.cc"), HasSubstr("pipeline_test.cc"))));
}

}  // namespace
}  // namespace kolo
