#include <kolo/core/ops/control_flow.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/variables.h>
#include <tests/core/gradient_check.h>
#include <tests/core/test_ops.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using testing::call;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Output number(const Scope& s, double value, DType dtype = DType::f64) {
  return fill(s, dtype, Shape{}, value);
}

// Runs `body` on `initial` for `times` iterations: a counter is the first of the loop's variables.
Outputs repeat(const Scope& s, int times, const LoopBody& body, const Outputs& initial) {
  Outputs variables = {number(s, 0)};
  variables.insert(variables.end(), initial.begin(), initial.end());
  Outputs finals = while_loop(
      s, [=](const Scope& c, const Outputs& v) { return less(c, v[0], number(c, times)); },
      [&](const Scope& b, const Outputs& v) {
        Outputs next = {add(b, v[0], number(b, 1))};
        for (const Output& result : body(b, {v.begin() + 1, v.end()})) next.push_back(result);
        return next;
      },
      variables);
  finals.erase(finals.begin());
  return finals;
}

TEST(WhileLoop, AsksTheConditionFirstAndEndsWithWhatTheBodyMade) {
  Graph graph;
  Scope s(graph);
  const Output limit = placeholder(s, DType::f64, Shape{});
  const Outputs finals = while_loop(
      s, [&](const Scope& c, const Outputs& v) { return less(c, v[0], limit); },
      [](const Scope& b, const Outputs& v) {
        return Outputs{add(b, v[0], number(b, 1)), mul(b, v[1], number(b, 2))};
      },
      {number(s, 0), number(s, 3)});
  Session session(graph);
  const auto value = [&](double n) {
    return session.run(finals[1], {{limit, Tensor::scalar(n)}}).value<double>();
  };
  EXPECT_EQ(value(0), 3);
  EXPECT_EQ(value(1), 6);
  EXPECT_EQ(value(10), 3 * 1024);
  EXPECT_EQ(finals[1].shape(), Shape());
  for (const char* op : {"While", "LoopVariable"}) {
    record_op_check(op, OpCheck::value);
    record_op_check(op, OpCheck::shape);
  }
}

TEST(WhileLoop, EndsAfterTheGreatestNumberOfIterations) {
  Graph graph;
  const Scope s(graph);
  const Outputs finals = while_loop(
      s, [](const Scope& c, const Outputs&) { return constant(c, Tensor::scalar(true)); },
      [](const Scope& b, const Outputs& v) { return Outputs{add(b, v[0], number(b, 1))}; }, {number(s, 0)},
      {.max_iterations = 7});
  EXPECT_EQ(Session(graph).run(finals[0]).value<double>(), 7);
}

TEST(WhileLoop, KeepsVariablesApartThatSwapTheirValues) {
  Graph graph;
  const Scope s(graph);
  // Fibonacci: (a, b) → (b, a + b).
  const Outputs finals = repeat(s, 10,
                                [](const Scope& b, const Outputs& v) {
                                  return Outputs{v[1], add(b, v[0], v[1])};
                                },
                                {number(s, 0), number(s, 1)});
  EXPECT_EQ(Session(graph).run(finals[0]).value<double>(), 55);
}

TEST(WhileLoop, KeepsVariablesApartThatAreSimplifiedToEachOther) {
  Graph graph;
  const Scope s(graph);
  const Tensor a = test_numbers({2, 2}), b = test_numbers({2, 2}, 1);
  const Outputs finals = repeat(
      s, 4,
      [](const Scope& at, const Outputs& v) {
        return Outputs{identity(at, mul(at, v[1], fill(at, DType::f64, {}, 1))), matmul(at, v[0], v[1])};
      },
      {constant(s, a), constant(s, b)});
  Output x = constant(s, a), y = constant(s, b);
  for (int i = 0; i < 4; ++i) {
    const Output next = matmul(s, x, y);
    x = y;
    y = next;
  }
  Session session(graph);
  const Tensor looped = session.run(finals[1]), expected = session.run(y);
  EXPECT_THAT(looped.span<double>(), ::testing::ElementsAreArray(expected.span<double>()));
}

TEST(WhileLoop, ComputesWhatIsMadeOutsideOnce) {
  Graph graph;
  const Scope s(graph);
  std::vector<std::int64_t> calls;
  testing::on_call = [&](std::int64_t tag) { calls.push_back(tag); };
  const Output outside = call(s, 4);
  const Outputs finals = while_loop(
      s, [](const Scope& c, const Outputs& v) { return less(c, v[0], number(c, 12, DType::f32)); },
      [&](const Scope& b, const Outputs& v) { return Outputs{testing::add(b, v[0], outside)}; },
      {number(s, 0, DType::f32)});
  EXPECT_EQ(Session(graph).run(finals[0]).value<float>(), 12);
  testing::on_call = [](std::int64_t) {};
  EXPECT_THAT(calls, ElementsAre(4));
}

TEST(WhileLoop, ReadsAsThePageOnControlFlowShowsIt) {
  Graph graph;
  const Scope s(graph);
  const Output zero = number(s, 0), one = number(s, 1), steps = number(s, 3);
  const Output h0 = constant(s, test_numbers({1, 2})), w = constant(s, test_numbers({2, 2}, 1));
  const Outputs last = while_loop(
      s, [&](const Scope& c, const Outputs& v) { return less(c, v[0], steps); },
      [&](const Scope& b, const Outputs& v) {
        return Outputs{add(b, v[0], one), tanh(b, matmul(b, v[1], w))};
      },
      {zero, h0});
  Output unrolled = h0;
  for (int step = 0; step < 3; ++step) unrolled = tanh(s, matmul(s, unrolled, w));
  Session session(graph);
  const Tensor looped = session.run(last[1]), expected = session.run(unrolled);
  EXPECT_THAT(looped.span<double>(), ::testing::ElementsAreArray(expected.span<double>()));
}

TEST(WhileLoop, UpdatesAVariableInEachIteration) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), number(s, 1));
  const Outputs finals = repeat(s, 3,
                                [&](const Scope& b, const Outputs& x) {
                                  const Operation update = assign_add(b, v, number(b, 10)).node;
                                  return Outputs{identity(b.control_dependencies({update}), x[0])};
                                },
                                {number(s, 0)});
  Session session(graph);
  session.run(v.initializer());
  session.run(finals[0]);
  EXPECT_EQ(session.run(v.read()).value<double>(), 31);
}

TEST(WhileLoop, MayWaitInItForItsVariables) {
  Graph graph;
  const Scope s(graph);
  const Outputs finals = repeat(s, 3,
                                [](const Scope& b, const Outputs& v) {
                                  const Scope waiting = b.control_dependencies({v[0]});
                                  const Output inner =
                                      repeat(waiting, 2,
                                             [&](const Scope& i, const Outputs& w) {
                                               const Scope both = i.control_dependencies({v[0], w[0]});
                                               return Outputs{add(both, w[0], number(i, 1))};
                                             },
                                             {number(b, 0)})[0];
                                  return tuple(b, {add(waiting, v[0], inner)});
                                },
                                {number(s, 0)});
  EXPECT_EQ(Session(graph).run(finals[0]).value<double>(), 3 * 2);
}

TEST(WhileLoop, CanHoldBranchesAndLoops) {
  Graph graph;
  const Scope s(graph);
  // Σ over i < 4 of (3·1 where i is 2, else 2·1).
  const Outputs finals = while_loop(
      s, [](const Scope& c, const Outputs& v) { return less(c, v[0], number(c, 4)); },
      [](const Scope& b, const Outputs& v) {
        const Output times = cond(
            b, equal(b, v[0], number(b, 2)), [](const Scope& t) { return Outputs{number(t, 3)}; },
            [](const Scope& t) { return Outputs{number(t, 2)}; })[0];
        const Outputs inner = while_loop(
            b, [&](const Scope& c, const Outputs& w) { return less(c, w[0], times); },
            [](const Scope& i, const Outputs& w) {
              return Outputs{add(i, w[0], number(i, 1)), add(i, w[1], number(i, 1))};
            },
            {number(b, 0), v[1]});
        return Outputs{add(b, v[0], number(b, 1)), inner[1]};
      },
      {number(s, 0), number(s, 0)});
  EXPECT_EQ(Session(graph).run(finals[1]).value<double>(), 2 + 2 + 3 + 2);
}

TEST(WhileLoop, GoesByTheShapesThatAreFed) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s, DType::f64, {-1});
  const Outputs finals =
      repeat(s, 3, [](const Scope& b, const Outputs& v) { return Outputs{add(b, v[0], v[0])}; }, {x});
  Session session(graph);
  EXPECT_THAT(session.run(finals[0], {{x, Tensor::of<double>({2}, {{1.0, 2.0}})}}).span<double>(),
              ElementsAre(8, 16));
  EXPECT_THAT(session.run(finals[0], {{x, Tensor::of<double>({1}, {3.0})}}).span<double>(), ElementsAre(24));
}

class WhileLoopGradient : public ::testing::TestWithParam<int> {};

TEST_P(WhileLoopGradient, OfTheInitialValueAndOfWhatIsUsedFromOutside) {
  expect_gradients({test_numbers({2, 3}), test_numbers({3, 3}, 1)}, [](Scope& s, const Outputs& x) {
    return repeat(s, GetParam(),
                  [&](const Scope& b, const Outputs& v) { return Outputs{tanh(b, matmul(b, v[0], x[1]))}; },
                  {x[0]})[0];
  });
  record_op_check("WhileGradient", OpCheck::value);
  record_op_check("WhileGradient", OpCheck::shape);
}

TEST_P(WhileLoopGradient, OfVariablesThatSwap) {
  expect_gradients({test_numbers({2}), test_numbers({2}, 1)}, [](Scope& s, const Outputs& x) {
    return repeat(s, GetParam(),
                  [](const Scope& b, const Outputs& v) {
                    return Outputs{v[1], mul(b, v[0], v[1])};
                  },
                  {x[0], x[1]})[0];
  });
}

INSTANTIATE_TEST_SUITE_P(Iterations, WhileLoopGradient, ::testing::Values(0, 1, 2, 5));

TEST(WhileLoop, RefusesTheGradientOfABodyThatIsRandom) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f64, {2});
  const Outputs finals = repeat(s, 2,
                                [](const Scope& b, const Outputs& v) {
                                  return Outputs{mul(b, v[0], random_uniform(b, DType::f64, {2}))};
                                },
                                {x});
  EXPECT_THAT([&] { gradients(s, {finals[0]}, {x}); },
              ThrowsMessage<UnimplementedError>(HasSubstr("has an effect or is random")));
}

TEST(WhileLoop, RefusesABodyThatChangesTypesShapesOrNumbers) {
  Graph graph;
  const Scope s(graph);
  const LoopCondition never = [](const Scope& c, const Outputs&) {
    return constant(c, Tensor::scalar(false));
  };
  const auto with = [&](const LoopBody& body) { while_loop(s, never, body, {number(s, 1)}); };
  EXPECT_THAT([&] { with([](const Scope&, const Outputs&) { return Outputs{}; }); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("the body gives 0 tensors for 1 variables")));
  EXPECT_THAT(
      [&] { with([](const Scope& b, const Outputs&) { return Outputs{zeros(b, DType::f64, {2})}; }); },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("variable 0 is f64 [], but the body makes f64 [2] of it")));
  EXPECT_THAT(
      [&] {
        while_loop(
            s, [](const Scope&, const Outputs& v) { return v[0]; },
            [](const Scope&, const Outputs& v) { return v; }, {number(s, 1)});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("the condition must be a bool scalar, not f64 []")));
}

TEST(WhileLoop, RefusesALoopWhoseNamesDoNotFitItsInputs) {
  Graph graph;
  const Scope s(graph);
  const std::vector<std::string> none, one = {"x:0"};
  const auto loop = [&](const std::vector<std::string>& variables, const std::vector<std::string>& results) {
    s.add("While", {number(s, 1)},
          {{"variables", variables}, {"captures", none}, {"condition", "c:0"}, {"results", results}});
  };
  const auto refused =
      ThrowsMessage<InvalidArgumentError>(HasSubstr("it needs a variable, as many results as variables"));
  EXPECT_THAT([&] { loop(none, none); }, refused);
  EXPECT_THAT([&] { loop(one, none); }, refused);
}

TEST(WhileLoop, SaysWhichValuesExistOnlyInIt) {
  Graph graph;
  const Scope s(graph);
  Output inside;
  while_loop(
      s, [](const Scope& c, const Outputs&) { return constant(c, Tensor::scalar(false)); },
      [&](const Scope& b, const Outputs& v) {
        inside = mul(b, v[0], v[0]);
        return Outputs{inside};
      },
      {number(s, 1)});
  EXPECT_THAT([&] { Session(graph).run(inside); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("cannot be computed outside")));
}

TEST(WhileLoop, RefusesAFeedOfItsBody) {
  Graph graph;
  const Scope s(graph);
  Output inside;
  const Outputs finals = repeat(s, 2,
                                [&](const Scope& b, const Outputs& v) {
                                  inside = placeholder(b.named("p"), DType::f64, Shape{});
                                  return Outputs{add(b, v[0], inside)};
                                },
                                {number(s, 1)});
  Session session(graph);
  EXPECT_THAT(
      [&] {
        session.run(finals[0], {{inside, Tensor::scalar(1.0)}});
      },
      ThrowsMessage<InvalidArgumentError>(
          AllOf(HasSubstr("p:0 may not be fed: it is of the body of loop \"while/loop\""),
                HasSubstr("make it before the loop"))));
}

}  // namespace
}  // namespace kolo
