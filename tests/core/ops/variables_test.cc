#include <kolo/core/ops/variables.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/op_checks.h"
#include "tests/core/run_op.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

template <typename T>
class VariableOf : public testing::Test {};
using Types =
    testing::Types<float, double, std::int32_t, std::int64_t, std::uint8_t, std::int8_t, Half, BFloat16>;
TYPED_TEST_SUITE(VariableOf, Types);

TYPED_TEST(VariableOf, IsAssignedAddedToAndSubtractedFrom) {
  using T = TypeParam;
  Graph graph;
  Scope s(graph);
  const Variable v(s, constant(s, Tensor::of<T>({2}, {T(10), T(20)})));
  const Output by = constant(s, Tensor::of<T>({2}, {T(1), T(2)}));
  const Output plus = assign_add(s, v, by), minus = assign_sub(s, v, by), set = assign(s, v, by);
  Session session(graph);
  session.run(v.initializer());
  EXPECT_THAT(session.run(plus).template span<T>(), ElementsAre(T(11), T(22)));
  EXPECT_THAT(session.run(plus).template span<T>(), ElementsAre(T(12), T(24)));
  EXPECT_THAT(session.run(minus).template span<T>(), ElementsAre(T(11), T(22)));
  EXPECT_THAT(session.run(set).template span<T>(), ElementsAre(T(1), T(2)));
  EXPECT_THAT(session.run(v.read()).template span<T>(), ElementsAre(T(1), T(2)));
  for (const Output& update : {plus, minus, set}) record_op_check(update.node->op(), OpCheck::value);
}

TEST(Variables, KeepTheirShapeWhenTheyAreUpdated) {
  Graph graph;
  Scope s(graph);
  const Variable v(s, zeros(s, DType::f32, {2, 3}));
  const Output value = placeholder(s, DType::f32, {-1, 3});
  for (const Output& output :
       {v.ref(), assign(s, v, value), assign_add(s, v, value), assign_sub(s, v, value)}) {
    EXPECT_EQ(output.shape(), (Shape{2, 3})) << output.name();
    record_op_check(output.node->op(), OpCheck::shape);
  }
}

TEST(Variables, HoldTruthValues) {
  Graph graph;
  Scope s(graph);
  const Variable v(s, constant(s, Tensor::scalar(true)));
  Session session(graph);
  session.run(v.initializer());
  EXPECT_TRUE(session.run(v.read()).value<bool>());
}

TEST(Variables, AreNotReadBeforeTheyAreInitialised) {
  Graph graph;
  Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  EXPECT_THAT([&] { Session(graph).run(v.read()); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("Attempting to use uninitialized value v")));
}

TEST(Variables, RefuseValueOfAnotherShape) {
  Graph graph;
  Scope s(graph);
  const Variable v(s, zeros(s, DType::f32, {2}));
  EXPECT_THAT([&] { assign(s, v, zeros(s, DType::f32, {3})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr(
                  "Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= [3]")));
  const Output fed = placeholder(s, DType::f32);
  const Output update = assign_add(s, v, fed);
  Session session(graph);
  session.run(v.initializer());
  EXPECT_THAT(
      [&] {
        session.run(update, {{fed, Tensor::zeros(DType::f32, {3})}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("lhs shape= [2] rhs shape= [3]")));
}

// With and without what passes make of a step.
struct VariableReads : testing::Test {
  Output number(float value) { return constant(s, value); }
  std::vector<float> run(const Outputs& outputs) {
    std::vector<float> values;
    for (const OptimizerLevel level : {OptimizerLevel::l0, OptimizerLevel::l1}) {
      Session session(graph, {.graph_options = {.optimizer_level = level}});
      session.run(v.initializer());
      std::vector<float> seen;
      for (const Tensor& value : session.run(std::vector<Fetch>(outputs.begin(), outputs.end())))
        seen.push_back(*value.data<float>());
      EXPECT_TRUE(values.empty() || seen == values);
      values = std::move(seen);
    }
    return values;
  }

  Graph graph;
  Scope s{graph};
  const Variable v{s.named("v"), constant(s, 1.0f)};
};

TEST_F(VariableReads, KeepTheValueThatAnUpdateMadeLaterChanges) {
  const Output old = identity(s, v), of_storage = identity(s, v.ref());
  const Output update = assign_add(s, v, number(5));
  EXPECT_THAT(run({sub(s, update, old), mul(s, old, of_storage), old, update}), ElementsAre(5, 1, 1, 6));
}

TEST_F(VariableReads, KeepItWhereAnotherViewOfThemIsMadeLater) {
  const Output old = identity(s, v), seen = reshape(s, old, {1});
  const Output update = assign_add(s, v, number(5));
  const Output later = reshape(s, old, {1, 1}), again = assign_add(s, v, number(5));
  EXPECT_THAT(run({neg(s, seen), neg(s, later), reshape(s, later, {1}), again, update}),
              ElementsAre(-1, -1, 1, 11, 6));
}

TEST_F(VariableReads, OfTheResultOfAnUpdateKeepItAsWell) {
  const Output first = assign_add(s, v, number(5)), second = assign_add(s, v, first);
  const Output third = assign(s, v, first);
  EXPECT_THAT(run({sub(s, second, first), third, second}), ElementsAre(6, 6, 12));
}

TEST_F(VariableReads, OfTheVariableItselfAreOfTheTimeOfTheirReader) {
  const Output before = neg(s, v), update = assign_add(s, v, number(5));
  const Output after = neg(s, v), of_storage = neg(s, v.ref());
  EXPECT_THAT(run({before, after, of_storage, update}), ElementsAre(-1, -6, -6, 6));
}

TEST_F(VariableReads, InABranchKeepTheirValueWhereItIsTaken) {
  for (const bool taken : {true, false}) {
    const Output result = cond(
        s, constant(s, Tensor::scalar(taken)),
        [&](const Scope& b) {
          const Output old = identity(b, v), update = assign_add(b, v, constant(b, 5.0f));
          return Outputs{sub(b, update, old)};
        },
        [&](const Scope& b) { return Outputs{neg(b, v)}; })[0];
    EXPECT_THAT(run({result}), ElementsAre(taken ? 5 : -1));
  }
}

struct GlobalStep : testing::Test {
  Graph graph;
  Scope s{graph};
};

TEST_F(GlobalStep, LiesWhereItsScopePutsVariables) {
  const Scope replica = Scope(s.graph()).device("/job:worker").device([](const Node& node) {
    return std::string(node.op() == "Variable" ? "/job:ps/task:1" : "");
  });
  const Variable step = create_global_step(replica.name_scope("model"));
  EXPECT_EQ(step.name(), "global_step");
  EXPECT_EQ(step.ref().node->requested_device(), "/job:ps/task:1");
}

TEST_F(GlobalStep, IsAWholeNumberThatIsSavedButNotTrained) {
  const Variable step = create_global_step(s);
  EXPECT_EQ(step.name(), "global_step");
  EXPECT_EQ(step.dtype(), DType::i64);
  EXPECT_EQ(step.shape(), Shape());
  EXPECT_THAT(global_variables(graph), ElementsAre(step));
  EXPECT_TRUE(trainable_variables(graph).empty());
  EXPECT_THAT(graph.collection(kGlobalStep), ElementsAre(step.ref().node));
}

TEST_F(GlobalStep, IsMadeOnce) {
  const Variable step = get_or_create_global_step(s);
  EXPECT_EQ(get_or_create_global_step(s), step);
  EXPECT_THAT([&] { create_global_step(s); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("\"global_step\" already exists.")));
}

TEST_F(GlobalStep, IsRefusedWhereItsNameIsTakenByAnotherType) {
  const Variable other(s.named("global_step"), constant(s, 1.0f));
  for (const auto& make : {create_global_step, get_or_create_global_step})
    EXPECT_THAT([&] { make(s); }, ThrowsMessage<InvalidArgumentError>(
                                      HasSubstr("Existing \"global_step\" does not have integer type")));
}

class VariablePartTest : public testing::Test {
 protected:
  std::vector<float> values(Output x) {
    const Tensor tensor = session.run(x);
    return {tensor.data<float>(), tensor.data<float>() + tensor.elements()};
  }

  Graph graph;
  Scope s{graph};
  const Variable v{s.named("v"), constant(s, Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}))};
  Session session{graph};
};

TEST_F(VariablePartTest, IsARangeOfTheVariablesElements) {
  const Variable part = variable_part(s, v, 2, 3);
  EXPECT_EQ(part.name(), "v/shard");
  EXPECT_EQ(part.shape(), Shape({3}));
  EXPECT_EQ(part.dtype(), DType::f32);
  record_op_check("VariablePart", OpCheck::shape);
  session.run(v.initializer());
  EXPECT_THAT(values(part.read()), ElementsAre(3, 4, 5));
  EXPECT_EQ(values(variable_part(s, v, 6, 0).read()).size(), 0u);
}

TEST_F(VariablePartTest, ChangesWithTheVariableAndTheVariableWithIt) {
  const Variable part = variable_part(s, v, 2, 3);
  const Output add = assign_add(s, part, constant(s, Tensor::of<float>({3}, {10, 20, 30})));
  const Output twice = assign(s, v, mul(s, v, constant(s, 2.0f)));
  session.run(v.initializer());
  EXPECT_THAT(values(add), ElementsAre(13, 24, 35));
  EXPECT_THAT(values(v.read()), ElementsAre(1, 2, 13, 24, 35, 6));
  session.run(twice);
  EXPECT_THAT(values(part.read()), ElementsAre(26, 48, 70));
}

// Reads and updates of the whole and of the part take effect in the order of their creation.
TEST_F(VariablePartTest, IsUpdatedInTheOrderOfTheGraph) {
  const Variable part = variable_part(s, v, 0, 2);
  const Output before = mul(s, v, constant(s, 1.0f));
  const Output changed = assign(s, part, zeros(s, DType::f32, {2}));
  const Output between = mul(s, v, constant(s, 10.0f));
  const Output again = assign_add(s, v, ones(s, DType::f32, {2, 3}));
  const Output after = mul(s, part, constant(s, 10.0f));
  session.run(v.initializer());
  const auto seen = session.run({before, changed, between, again, after});
  EXPECT_THAT(seen[0].span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(seen[2].span<float>(), ElementsAre(0, 0, 30, 40, 50, 60));
  EXPECT_THAT(seen[4].span<float>(), ElementsAre(10, 10));
}

TEST_F(VariablePartTest, HasAValueOnceItsWholeHasOne) {
  const Variable part = variable_part(s, v, 0, 2);
  EXPECT_THAT([&] { session.run(part.read()); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("uninitialized value v")));
  session.run(v.initializer());
  session.run(part.read());
  EXPECT_EQ(global_variables(graph).size(), 1u) << "a part is saved with its whole";
}

TEST_F(VariablePartTest, IsTheSameVariableWhenAskedForAgain) {
  const Variable part = variable_part(s, v, 1, 2);
  EXPECT_EQ(variable_part(s, v, 1, 2), part);
  EXPECT_NE(variable_part(s, v, 0, 2), part);
  EXPECT_EQ(whole_variable(part), v);
  EXPECT_EQ(whole_variable(v), v);
}

TEST_F(VariablePartTest, LiesInItsVariable) {
  EXPECT_THAT([&] { variable_part(s, v, 4, 3); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("3 elements from element 4 on do not lie in a variable of shape [2,3]")));
  EXPECT_THROW(variable_part(s, v, -1, 1), InvalidArgumentError);
  EXPECT_THROW(variable_part(s, variable_part(s, v, 0, 2), 0, 1), InvalidArgumentError);
}

struct Scatter : testing::Test {
  using Builder = Output (*)(const Scope&, const Variable&, Output, Output);

  // The variable after `op`.
  std::vector<float> after(Builder op, const Tensor& indices, const Tensor& updates) {
    const Output result = op(s, v, constant(s, indices), constant(s, updates));
    Session session(graph);
    session.run(v.initializer());
    session.run(result);
    const Tensor value = session.run(v.read());
    EXPECT_EQ(result.shape(), v.shape());
    record_op_check(result.node->op(), OpCheck::value);
    record_op_check(result.node->op(), OpCheck::shape);
    const auto span = value.span<float>();
    return {span.begin(), span.end()};
  }

  Graph graph;
  Scope s{graph};
  Variable v{s.named("v"), constant(s, Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}))};
};

const Tensor kTwice = Tensor::of<std::int32_t>({3}, {2, 0, 2});
const Tensor kRows = Tensor::of<float>({3, 2}, {10, 20, 30, 40, 50, 60});

TEST_F(Scatter, AddsBothUpdatesOfARowThatIsListedTwice) {
  EXPECT_THAT(after(scatter_add, kTwice, kRows), ElementsAre(31, 42, 3, 4, 65, 86));
}

TEST_F(Scatter, SubtractsBothUpdatesOfARowThatIsListedTwice) {
  EXPECT_THAT(after(scatter_sub, kTwice, kRows), ElementsAre(-29, -38, 3, 4, -55, -74));
}

TEST_F(Scatter, KeepsTheLastUpdateOfARowThatIsListedTwice) {
  EXPECT_THAT(after(scatter_update, kTwice, kRows), ElementsAre(30, 40, 3, 4, 50, 60));
}

TEST_F(Scatter, TakesIndicesOfAnyShape) {
  const Tensor indices = Tensor::of<std::int64_t>({1, 2}, {1, 0});
  EXPECT_THAT(after(scatter_update, indices, Tensor::of<float>({1, 2, 2}, {7, 8, 9, 10})),
              ElementsAre(9, 10, 7, 8, 5, 6));
}

TEST_F(Scatter, ChangesNothingWithoutIndices) {
  EXPECT_THAT(after(scatter_add, Tensor(DType::i32, {0}), Tensor(DType::f32, {0, 2})),
              ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(Scatter, ChangesNothingWhereAnIndexIsOutOfRange) {
  const Output result = scatter_add(s, v, constant(s, Tensor::of<std::int32_t>({2}, {0, 3})),
                                    constant(s, Tensor::of<float>({2, 2}, {1, 1, 1, 1})));
  Session session(graph);
  session.run(v.initializer());
  EXPECT_THAT([&] { session.run(result); }, ThrowsMessage<InvalidArgumentError>(
                                                HasSubstr("Index 3 at offset 1 in indices is out of range")));
  EXPECT_THAT(session.run(v.read()).span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(Scatter, NamesShapesThatDoNotFit) {
  EXPECT_THAT(
      [&] {
        scatter_add(s, v, constant(s, kTwice), constant(s, Tensor::of<float>({2, 2}, {1, 1, 1, 1})));
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[2,2]"), HasSubstr("[3,2]"))));
}

TEST(ScatterAdd, IsTheSameOnAnyNumberOfThreads) {
  const auto run = [](int threads) {
    const IntraOpThreads scope(threads);
    Graph graph;
    Scope s(graph);
    const Variable v(s.named("v"), zeros(s, DType::f32, {50, 40}));
    Tensor indices(DType::i32, {3000}), updates(DType::f32, {3000, 40});
    for (int i = 0; i < 3000; ++i) indices.data<std::int32_t>()[i] = i * i % 50;
    for (int i = 0; i < 120000; ++i) updates.data<float>()[i] = 1.0f / static_cast<float>(1 + i % 97);
    const Output result = scatter_add(s, v, constant(s, indices), constant(s, updates));
    SessionConfig config;
    config.intra_op_parallelism_threads = threads;
    Session session(graph, config);
    session.run(v.initializer());
    return session.run(result).clone();
  };
  const Tensor one = run(1), three = run(3);
  for (std::int64_t i = 0; i < one.elements(); ++i)
    ASSERT_EQ(three.data<float>()[i], one.data<float>()[i]) << "element " << i;
}

struct TwoAverages {
  Graph graph;
  Scope s{graph};
  Output x = placeholder(s, DType::f32, {});
  Output loss = square(s, x), other_loss = neg(s, x);
  Variable of_loss{s.named("a"), constant(s, 0.0f), {.trainable = false}};
  Variable of_other{s.named("b"), constant(s, 0.0f), {.trainable = false}};
  Variable stepped{s.named("stepped"), constant(s, 1.0f)};

  TwoAverages() {
    add_update_op(s, assign(s, of_loss, loss));
    add_update_op(s, assign(s, of_other, other_loss));
  }
};

TEST(UpdateOps, RunWithTheStepOfTheLossTheyBelongTo) {
  TwoAverages net;
  const Operation step = with_updates(net.s, assign_add(net.s, net.stepped, net.loss), net.loss);
  Session session(net.graph);
  session.run(global_variables_initializer(net.s));
  session.run(step, {{net.x, Tensor::scalar(3.0f)}});
  EXPECT_EQ(session.run(net.stepped.read()).value<float>(), 10);
  EXPECT_EQ(session.run(net.of_loss.read()).value<float>(), 9);
  EXPECT_EQ(session.run(net.of_other.read()).value<float>(), 0);
}

TEST(UpdateOps, DoNotRunWhenTheStepFails) {
  TwoAverages net;
  const Output unfed = placeholder(net.s, DType::f32, {});
  const Operation step = with_updates(net.s, assign_add(net.s, net.stepped, unfed), net.loss);
  Session session(net.graph);
  session.run(global_variables_initializer(net.s));
  EXPECT_ANY_THROW(session.run(step, {{net.x, Tensor::scalar(3.0f)}}));
  EXPECT_EQ(session.run(net.of_loss.read()).value<float>(), 0);
}

TEST(UpdateOps, LeaveAStepWithoutUpdatesAsItIs) {
  TwoAverages net;
  const Operation step = assign_add(net.s, net.stepped, net.x);
  EXPECT_EQ(with_updates(net.s, step, net.x), step);
}

}  // namespace
}  // namespace kolo
