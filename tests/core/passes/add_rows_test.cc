#include <gmock/gmock.h>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/gradient_check.h"
#include "tests/core/passes/placed_step.h"
#include "tests/core/same_bits.h"

namespace kolo {
namespace {

using ::testing::Contains;
using ::testing::Not;

constexpr std::int64_t kRows = 7, kWidth = 70;  // more columns than a piece of the kernel's

// Steps of a GPU, on whatever computes them.
struct AddRows : ::testing::TestWithParam<DType> {
  Output numbers(const char* name, const Shape& shape) {
    const Output x = placeholder(s.named(name), GetParam(), shape);
    feeds.emplace_back(x, detail::converted<double>(test_numbers(shape, ++salt), GetParam()));
    return x;
  }
  Output slices(Output rows) {
    return to_dense(s, {.values = rows, .indices = indices, .dense_shape = {kRows, kWidth}});
  }
  // Of a table by whose rows numbers are looked up and that is multiplied by.
  std::vector<Fetch> gradient_of_tied_table() {
    const Output table = numbers("table", {kRows, kWidth});
    const Output words = gather(s, table, constant(s, Tensor::of<std::int64_t>({2, 3}, {4, 0, 4, 6, 1, 4})));
    const Output y = matmul(s, reshape(s, words, {6, kWidth}), table, {.transpose_b = true});
    const Tensor weights = detail::converted<double>(test_numbers(y.shape(), 50), GetParam());
    return {y, gradients(s, {y}, {table}, {constant(s, weights)})[0]};
  }
  std::vector<std::string> ops_on(const char* kind, const std::vector<Fetch>& fetches) {
    StepGraph step = placed_step(fetches);
    for (StepNode& node : step.nodes) node.device = local_device_name(kind, 0);
    rewrite(step, only("add_rows"));
    return ops_of(step);
  }
  std::vector<std::string> ops(const std::vector<Fetch>& fetches) { return ops_on("GPU", fetches); }
  void expect_same_bits(const std::vector<Fetch>& fetches) {
    GraphOptions with = only("add_rows");
    with.precision = Precision::f32;
    kolo::expect_same_bits(graph, fetches, feeds, {.graph_options = with},
                           {.optimizer_level = OptimizerLevel::l0, .precision = Precision::f32});
  }

  Graph graph;
  Scope s{graph};
  Feeds feeds;
  int salt = 0;
  Output indices = constant(s, Tensor::of<std::int32_t>({5}, {3, 0, 3, 6, 3}));
  Output rows = numbers("rows", {5, kWidth}), dense = numbers("dense", {kRows, kWidth});
};

TEST_P(AddRows, TakeThePlaceOfASecondGradientOfATiedTable) {
  const std::vector<Fetch> fetches = gradient_of_tied_table();
  EXPECT_THAT(ops(fetches), Contains(detail::kAddRowsOp));
  EXPECT_THAT(ops(fetches), Not(Contains("SlicesToDense")));
  EXPECT_THAT(ops(fetches), Not(Contains("AddN")));
  expect_same_bits(fetches);
}

TEST_P(AddRows, AreTheFirstTermOrTheSecond) {
  for (const bool is_first : {false, true}) {
    const Output made = mul(s, dense, dense), added = slices(rows);
    const Output sum = is_first ? add_n(s, {added, made}) : add_n(s, {made, added});
    EXPECT_THAT(ops({sum}), Contains(detail::kAddRowsOp));
    expect_same_bits({neg(s, sum)});
    expect_same_bits({neg(s, sum), made});  // whose memory is not free
  }
}

TEST_P(AddRows, TakeNoRowsAtAll) {
  const Output none = constant(s, Tensor::of<std::int64_t>({0}, {}));
  const Output sum = add_n(s, {mul(s, dense, dense), to_dense(s, {.values = numbers("none", {0, kWidth}),
                                                                  .indices = none,
                                                                  .dense_shape = {kRows, kWidth}})});
  EXPECT_THAT(ops({sum}), Contains(detail::kAddRowsOp));
  expect_same_bits({sum});
}

TEST_P(AddRows, StayOnACpu) {
  EXPECT_THAT(ops_on("CPU", gradient_of_tied_table()), Contains("SlicesToDense"));
}

TEST_P(AddRows, StayWhereSomethingElseReadsThem) {
  const Output added = slices(rows), sum = add_n(s, {dense, added});
  EXPECT_THAT(ops({sum, added}), Contains("SlicesToDense"));
  EXPECT_THAT(ops({sum, neg(s, added)}), Contains("SlicesToDense"));
  EXPECT_THAT(ops({add_n(s, {added, added})}), Contains("SlicesToDense"));
  EXPECT_THAT(ops({add_n(s, {dense, added, dense})}), Contains("SlicesToDense"));
  const Output behind = identity(s.control_dependencies({Operation(added.node)}), constant(s, 1.0f));
  EXPECT_THAT(ops({sum, behind}), Contains("SlicesToDense"));
}

TEST_P(AddRows, StayWhereTheyAreOfAVariableThatChangesMeanwhile) {
  const Variable v(s.named("v"), zeros(s, GetParam(), {5, kWidth}));
  const Output added = slices(v.read());
  const Output changed = assign_add(s, v, rows);
  const Output sum = add_n(s, {dense, added});
  EXPECT_THAT(ops({sum, Operation(changed)}), Contains("SlicesToDense"));
  EXPECT_THAT(ops({add_n(s, {dense, slices(v.read())}), Operation(changed)}), Contains(detail::kAddRowsOp));
}

INSTANTIATE_TEST_SUITE_P(Types, AddRows, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& tested) { return tested.param == DType::f32 ? "f32" : "f64"; });

}  // namespace
}  // namespace kolo
