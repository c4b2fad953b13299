#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/debugging.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/passes/update_guards.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

using ::testing::Each;

constexpr std::int64_t kElements = std::int64_t{1} << 20;  // 4 MiB

struct InitialValues : ::testing::Test {
  Output number(float value) { return fill(s, DType::f32, {kElements}, value); }
  std::size_t planned_bytes(const std::vector<Fetch>& step) {
    RunMetadata metadata;
    session().run(step, {}, {}, &metadata);
    return metadata.memory.at(0).planned_bytes;
  }
  void expect_all(const Tensor& tensor, float value) { EXPECT_THAT(tensor.span<float>(), Each(value)); }
  Session& session() {
    if (!session_) session_.emplace(graph, SessionConfig{.inter_op_parallelism_threads = 1});
    return *session_;
  }

  Graph graph;
  Scope s{graph};
  Variable v{s.named("v"), number(1)};
  std::optional<Session> session_;
};

TEST_F(InitialValues, AreMadeInTheVariablesMemory) {
  EXPECT_LT(planned_bytes({v.initializer()}), kElements);
  expect_all(session().run(v.read()), 1);
}

TEST_F(InitialValues, MayBeReadBehindTheAssignmentInTheSameStep) {
  const Output assigned = assign(s, v, number(2));
  const Output twice = add(s, v.read(), v.read());
  session().run(v.initializer());
  const auto results = session().run({twice, Operation(assigned)});
  expect_all(results[0], 4);
}

// What stops the step stands between the value and the assignment.
TEST_F(InitialValues, DoNotTouchTheVariableWhereTheStepIsStoppedBefore) {
  const Output loss = placeholder(s, DType::f32, {});
  const Output ok = check_numerics(s, loss, "the loss is not finite");
  const Output after_check = assign(s.control_dependencies({Operation(ok.node)}), v, number(9));
  Tensor nan(DType::f32, {});
  nan.data<float>()[0] = std::nanf("");
  EXPECT_THROW(session().run(std::vector<Fetch>{Operation(after_check)}, {{loss, nan}}), Error);
  session().run(v.initializer());
  expect_all(session().run(v.read()), 1);
  EXPECT_THROW(session().run(std::vector<Fetch>{Operation(after_check)}, {{loss, nan}}), Error);
  expect_all(session().run(v.read()), 1);
}

TEST_F(InitialValues, DoNotTouchTheVariableWhereAGuardStopsItsUpdates) {
  const Output x = placeholder(s, DType::f32, {kElements}), loss = placeholder(s, DType::f32, {});
  const Output value = square(s, x);
  const Output ok = check_numerics(s, square(s, add(s, loss, loss)), "the loss is not finite");
  const Output assigned = assign(s, v, value);
  graph.add_to_collection(kUpdateGuards, *ok.node);
  session().run(v.initializer());
  Tensor nan(DType::f32, {});
  nan.data<float>()[0] = std::nanf("");
  EXPECT_THROW(session().run(std::vector<Fetch>{Operation(assigned), Operation(ok.node)},
                             {{x, Tensor::zeros(DType::f32, {kElements})}, {loss, nan}}),
               Error);
  expect_all(session().run(v.read()), 1);
}

TEST_F(InitialValues, OfANodeBeforeTheAssignmentAreTheOldOnes) {
  const Output before = add(s, v.read(), v.read());
  const Output assigned = assign(s, v, number(2));
  session().run(v.initializer());
  expect_all(session().run({before, Operation(assigned)})[0], 2);
  expect_all(session().run(v.read()), 2);
}

TEST_F(InitialValues, MayBeComputedOfTheVariableItself) {
  const Output assigned = assign(s, v, add(s, v.read(), square(s, add(s, v.read(), v.read()))));
  session().run(v.initializer());
  session().run(Operation(assigned));
  expect_all(session().run(v.read()), 5);
}

TEST_F(InitialValues, ThatAreFetchedOrReadElsewhereStayWhatTheyWere) {
  const Output value = add(s, number(1), number(2)), square_of_it = square(s, value);
  const Output assigned = assign(s, v, value), more = assign_add(s, v, number(1));
  session().run(v.initializer());
  const auto results = session().run({value, square_of_it, Operation(assigned), Operation(more)});
  expect_all(results[0], 3);
  expect_all(results[1], 9);
  expect_all(session().run(v.read()), 4);
}

TEST_F(InitialValues, OfTheSecondAssignmentComeAfterTheFirst) {
  const Output first = assign(s, v, number(2)), second = assign(s, v, number(3));
  session().run(v.initializer());
  session().run({Operation(first), Operation(second)});
  expect_all(session().run(v.read()), 3);
}

}  // namespace
}  // namespace kolo
