// Gradients of a few rows over several ranks: row 38 of the worked examples and its like.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/collectives/graph/group_ops.h>
#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/partitioned_variables.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/registry.h>

#include "tests/optimizer/small_training.h"

namespace kolo {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// A table of zeros [rows, 2] whose rows are fed, with what their gradients are.
class Table {
 public:
  Table(std::int64_t rows, const std::string& rule, DistributedOptimizerOptions options = {})
      : table(s.named("table"), zeros(s, DType::f32, {rows, 2})),
        optimizer(make_optimizer(rule, {.learning_rate = 1.0, .momentum = 0.5}), std::move(options)) {
    train = optimizer.minimize(s, mul(s, gather(s, table, ids), factors));
    const Operation initializer = global_variables_initializer(s);
    session.run(initializer);
  }
  /// The table after a step in which this rank uses `rows`, with the gradient `value` in both columns.
  Tensor step(const std::vector<std::int32_t>& rows, float value) {
    const std::vector<float> values(2 * rows.size(), value);
    session.run(train, {{ids, tensor_of(rows)},
                        {factors, tensor_of(values).reshaped({static_cast<std::int64_t>(rows.size()), 2})}});
    return session.run(table.read());
  }

  Graph graph;
  Scope s{graph};
  Variable table;
  Output ids = placeholder(s, DType::i32, {-1}), factors = placeholder(s, DType::f32, {-1, 2});
  DistributedOptimizer optimizer;
  Operation train;
  Session session{graph};
};

float at(const Tensor& table, std::int64_t row) {
  EXPECT_EQ(table.data<float>()[2 * row], table.data<float>()[2 * row + 1]);
  return table.data<float>()[2 * row];
}

// Row 38: rank 0 has {0: 1}, rank 1 {0: 3, 2: 5}.
TEST(SparseGradients, AreAveragedRowByRow) {
  if (size() != 2) GTEST_SKIP() << "an example of two ranks";
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), zeros(s, DType::f32, {3}));
  const bool first = rank() == 0;
  const Output ids =
      constant(s, tensor_of(first ? std::vector<std::int32_t>{0} : std::vector<std::int32_t>{0, 2}));
  const Output factors = constant(s, tensor_of(first ? std::vector<float>{1} : std::vector<float>{3, 5}));
  DistributedOptimizer optimizer(make_optimizer("sgd", {.learning_rate = 1.0}));
  const Operation train = optimizer.minimize(s, mul(s, gather(s, w, ids), factors));
  const Operation initializer = global_variables_initializer(s);
  Session session(graph);
  session.run(initializer);
  session.run(train);
  EXPECT_THAT(elements<float>(session.run(w.read())), ElementsAre(-2, 0, -2.5));
}

TEST(SparseGradients, OfSharedAndOwnRowsOfALargeTable) {
  Table training(1000, "sgd");
  const Tensor table = training.step({rank(), 500, 500}, static_cast<float>(rank() + 1));
  const float ranks = static_cast<float>(size());
  for (int r = 0; r < size(); ++r) EXPECT_NEAR(at(table, r), -static_cast<float>(r + 1) / ranks, 1e-6);
  EXPECT_NEAR(at(table, 500), -(ranks + 1), 1e-5) << "twice the average of 1, …, R";
  EXPECT_EQ(at(table, 999), 0);
}

TEST(SparseGradients, AreSummedWhereAsked) {
  Table training(1000, "sgd", {.op = ReduceOp::sum});
  EXPECT_NEAR(at(training.step({7}, 2), 7), -2 * size(), 1e-5);
}

// 0, 1, 2, … rows on ranks 0, 1, 2, …
TEST(SparseGradients, MayBeOfNoRowOnARank) {
  for (const std::int64_t rows : {1000, 10}) {
    Table training(rows, "sgd", {.op = ReduceOp::sum});
    const Tensor table = training.step(std::vector<std::int32_t>(static_cast<std::size_t>(rank()), 3), 1);
    EXPECT_NEAR(at(table, 3), -size() * (size() - 1) / 2.0, 1e-5) << rows;
  }
}

// Momentum of rows that no rank uses does not move them, however the rows travelled: gathered from a large
// table, or inside the whole of a small one.
TEST(SparseGradients, MoveTheListedRowsAlone) {
  for (const std::int64_t rows : {1000, 6}) {
    Table training(rows, "momentum");
    training.step({0, 5}, 1);
    const Tensor table = training.step({5, 5, 5, 5}, 0.25);
    EXPECT_NEAR(at(table, 0), -1, 1e-6) << rows;
    EXPECT_NEAR(at(table, 5), -1 - (0.5 + 1), 1e-6) << rows;
    EXPECT_EQ(at(table, 1), 0);
  }
}

TEST(SparseGradients, BecomeWholeWhereAsked) {
  Table training(1000, "momentum", {.sparse_as_dense = true});
  training.step({0, 5}, 1);
  EXPECT_NEAR(at(training.step({5}, 1), 0), -1.5, 1e-6) << "momentum moves a row that is not listed";
}

TEST(SparseGradients, OfSeveralPassesAreSummedWhole) {
  Table training(1000, "sgd", {.backward_passes_per_step = 2});
  EXPECT_THAT(elements<float>(training.step({4}, 1)), Each(0));
  EXPECT_NEAR(at(training.step({4, 9}, 2), 4), -3, 1e-6);
}

TEST(SparseGradients, ManyStepsGiveTheSameTableAsWholeOnes) {
  Table sparse(50, "sgd"), whole(50, "sgd", {.sparse_as_dense = true});
  Tensor a, b;
  for (int step = 0; step < 20; ++step) {
    std::vector<std::int32_t> rows;
    for (int i = 0; i < step; ++i) rows.push_back((7 * i + 3 * rank() + step) % 50);
    const float value = 0.1f * static_cast<float>(rank() + step);
    a = sparse.step(rows, value);
    b = whole.step(rows, value);
  }
  for (std::int64_t i = 0; i < a.elements(); ++i) EXPECT_NEAR(a.data<float>()[i], b.data<float>()[i], 1e-4);
}

// How many rows of a part a rank uses, none perhaps, only the step tells.
TEST(SparseGradients, OfATableInPartsAreThoseOfAWholeOne) {
  for (const std::int64_t rows : {1000, 10}) {
    Table whole(rows, "momentum");
    Graph graph;
    Scope s(graph);
    const PartitionedVariable table = partitioned_variable(
        s.named("table"), {rows, 2},
        [](const Scope& in, const Shape& part) { return zeros(in, DType::f32, part); }, fixed_size(3));
    const Output ids = placeholder(s, DType::i32, {-1}), factors = placeholder(s, DType::f32, {-1, 2});
    const Output found = embedding_lookup(s, table, ids, PartitionStrategy::div), value = table.read(s);
    DistributedOptimizer optimizer(make_optimizer("momentum", {.learning_rate = 1.0, .momentum = 0.5}));
    const Operation train = optimizer.minimize(s, mul(s, found, factors));
    const Operation initializer = global_variables_initializer(s);
    Session session(graph);
    session.run(initializer);
    for (const std::vector<std::int32_t>& used :
         {std::vector<std::int32_t>{rank(), 9, 9}, std::vector<std::int32_t>{9, 5},
          std::vector<std::int32_t>{}}) {
      const Tensor expected = whole.step(used, static_cast<float>(rank() + 1));
      const std::vector<float> values(2 * used.size(), static_cast<float>(rank() + 1));
      session.run(train,
                  {{ids, tensor_of(used)},
                   {factors, tensor_of(values).reshaped({static_cast<std::int64_t>(used.size()), 2})}});
      const std::vector<float> found_values = elements<float>(session.run(value));
      for (std::int64_t i = 0; i < expected.elements(); ++i)
        ASSERT_NEAR(found_values[static_cast<std::size_t>(i)], expected.data<float>()[i], 1e-5)
            << i << " of " << rows;
    }
  }
}

TEST(SparseGradients, OfTablesThatDifferAreFoundBeforeTheFirstStep) {
  if (size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  Table training(rank() == 1 ? 8 : 9, "sgd");
  EXPECT_THAT([&] { training.step({1}, 1); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr(
                  "gradient 0 is \"table\" rows of [9,2] by int32 on rank 0 but \"table\" rows of [8,2]")));
}

TEST(SparseGradients, OfAnIndexThatIsNoRowFailOnAllRanks) {
  if (size() == 1) GTEST_SKIP() << "one rank gathers nothing";
  Graph graph;
  Scope s(graph);
  const IndexedSlices slices = {.values = ones(s, DType::f32, {1, 2}),
                                .indices = constant(s, tensor_of<std::int32_t>({rank() == 0 ? 9 : 1})),
                                .dense_shape = {9, 2}};
  const GroupReduced reduced =
      group_reduce(s, {.gradients = {}, .names = {}, .slices = {slices}, .slice_names = {"table"}});
  Session session(graph);
  try {
    session.run(reduced.slices[0].values);
    FAIL() << "the step was run";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("Index 9 at offset 0 in indices is out of range"));
    EXPECT_EQ(error.code(), rank() == 0 ? Code::invalid_argument : Code::aborted);
  }
}

}  // namespace
}  // namespace kolo
