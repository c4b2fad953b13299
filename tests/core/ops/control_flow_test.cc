#include <kolo/core/ops/control_flow.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <tests/core/gradient_check.h>
#include <tests/core/run_op.h>
#include <tests/core/test_ops.h>

namespace kolo {
namespace {

using testing::call;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

// Two branches of recorded calls under a condition that is fed.
class Cond : public ::testing::Test {
 protected:
  Cond() {
    testing::on_call = [this](std::int64_t tag) { calls_.push_back(tag); };
  }
  ~Cond() override {
    testing::on_call = [](std::int64_t) {};
  }

  Tensor run(const Output& fetch, bool taken) {
    return session_.run(fetch, {{pred_, Tensor::scalar(taken)}});
  }

  Graph graph_;
  Scope s_{graph_};
  Output pred_ = placeholder(s_, DType::boolean, Shape{});
  Session session_{graph_, {.intra_op_parallelism_threads = 1, .inter_op_parallelism_threads = 1}};
  std::vector<std::int64_t> calls_;
};

TEST_F(Cond, RunsTheOpsOfTheBranchThatIsTakenAlone) {
  const Output y = cond(
      s_, pred_, [](const Scope& s) { return Outputs{call(s, 1)}; },
      [](const Scope& s) { return Outputs{call(s, 2)}; })[0];
  EXPECT_EQ(run(y, true).value<float>(), 1);
  EXPECT_EQ(run(y, false).value<float>(), 2);
  EXPECT_THAT(calls_, ElementsAre(1, 2));
  record_op_check("BranchGuard", OpCheck::value);
  record_op_check("BranchGuard", OpCheck::shape);
  record_op_check("BranchJoin", OpCheck::value);
}

TEST_F(Cond, RunsWhatIsMadeOutsideInAnyCase) {
  const Output outside = call(s_, 7);
  const Output y = cond(
      s_, pred_, [&](const Scope& s) { return Outputs{testing::add(s, outside, outside)}; },
      [](const Scope& s) { return Outputs{call(s, 2)}; })[0];
  EXPECT_EQ(run(y, false).value<float>(), 2);
  EXPECT_THAT(calls_, ::testing::UnorderedElementsAre(7, 2));
  EXPECT_EQ(run(y, true).value<float>(), 14);
}

TEST_F(Cond, ReadsAsThePageOnControlFlowShowsIt) {
  const Scope& s = s_;
  const Output x = placeholder(s, DType::f32, Shape{}), limit = constant(s, 3.0f);
  const Output y = cond(
      s, less(s, x, limit), [&](const Scope& b) { return Outputs{mul(b, x, x)}; },
      [&](const Scope& b) { return Outputs{identity(b, limit)}; })[0];
  EXPECT_EQ(session_.run(y, {{x, Tensor::scalar(2.0f)}}).value<float>(), 4);
  EXPECT_EQ(session_.run(y, {{x, Tensor::scalar(5.0f)}}).value<float>(), 3);
}

TEST_F(Cond, SkipsWhatWaitsForABranchThatIsNotTaken) {
  Output inside;
  const Output y = cond(
      s_, pred_,
      [&](const Scope& s) {
        inside = call(s, 1);
        return Outputs{inside};
      },
      [](const Scope& s) { return Outputs{call(s, 2)}; })[0];
  const Operation after = group(s_, {call(s_.control_dependencies({inside.node}), 3).node, y.node});
  session_.run({Fetch(after)}, {{pred_, Tensor::scalar(false)}});
  EXPECT_THAT(calls_, ElementsAre(2));
}

TEST_F(Cond, RefusesToFetchAValueOfABranchThatIsNotTaken) {
  Output inside;
  cond(
      s_, pred_,
      [&](const Scope& s) {
        inside = call(s, 1);
        return Outputs{inside};
      },
      [](const Scope& s) { return Outputs{call(s, 2)}; });
  EXPECT_EQ(run(inside, true).value<float>(), 1);
  EXPECT_THAT([&] { run(inside, false); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Retval[0] does not have value")));
  EXPECT_EQ(run(inside, true).value<float>(), 1);
}

TEST_F(Cond, NestsWithoutRunningInnerBranchesOfAnOuterOneThatIsNotTaken) {
  const Output inner_pred = placeholder(s_, DType::boolean, Shape{});
  const auto inner = [&](const Scope& s) {
    return cond(
        s, inner_pred, [](const Scope& t) { return Outputs{call(t, 1)}; },
        [](const Scope& t) { return Outputs{call(t, 2)}; });
  };
  const Output y = cond(s_, pred_, inner, [](const Scope& s) { return Outputs{call(s, 3)}; })[0];
  const auto value = [&](bool outer, bool in) {
    return session_.run(y, {{pred_, Tensor::scalar(outer)}, {inner_pred, Tensor::scalar(in)}}).value<float>();
  };
  EXPECT_EQ(value(true, true), 1);
  EXPECT_EQ(value(true, false), 2);
  EXPECT_EQ(value(false, true), 3);
  EXPECT_EQ(value(false, false), 3);
  EXPECT_THAT(calls_, ElementsAre(1, 2, 3, 3));
}

TEST_F(Cond, UpdatesAVariableInTheBranchThatIsTakenAlone) {
  const Variable v(s_.named("v"), constant(s_, 1.0f));
  const Operation step = cond(
      s_, pred_, [&](const Scope& s) { return Operation(assign_add(s, v, constant(s, 10.0f)).node); },
      [](const Scope& s) { return no_op(s); });
  session_.run(v.initializer());
  session_.run(step, {{pred_, Tensor::scalar(false)}});
  EXPECT_EQ(session_.run(v.read()).value<float>(), 1);
  session_.run(step, {{pred_, Tensor::scalar(true)}});
  EXPECT_EQ(session_.run(v.read()).value<float>(), 11);
}

TEST_F(Cond, DoesNotReadAnUninitialisedVariableInABranchThatIsNotTaken) {
  const Variable v(s_.named("v"), constant(s_, 1.0f));
  const Output y = cond(
      s_, pred_, [&](const Scope& s) { return Outputs{mul(s, v.read(), constant(s, 2.0f))}; },
      [](const Scope& s) { return Outputs{constant(s, 5.0f)}; })[0];
  // v.read() is made outside: it runs in any case.
  EXPECT_THAT([&] { run(y, false); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("uninitialized value v")));
  const Output z = cond(
      s_, pred_, [&](const Scope& s) { return Outputs{identity(s, v.ref())}; },
      [](const Scope& s) { return Outputs{constant(s, 5.0f)}; })[0];
  EXPECT_EQ(run(z, false).value<float>(), 5);
}

TEST_F(Cond, WorksOnSeveralThreads) {
  Outputs sums;
  for (int i = 0; i < 100; ++i) {
    const Output x = constant(s_, static_cast<float>(i));
    sums.push_back(cond(
        s_, pred_, [&](const Scope& s) { return Outputs{mul(s, x, x)}; },
        [&](const Scope& s) { return Outputs{testing::add(s, x, x)}; })[0]);
  }
  Session session(graph_, {.inter_op_parallelism_threads = 4});
  std::vector<Fetch> fetches(sums.begin(), sums.end());
  for (int run = 0; run < 20; ++run) {
    const bool taken = run % 2 == 0;
    const auto values = session.run(fetches, {{pred_, Tensor::scalar(taken)}});
    for (int i = 0; i < 100; ++i) EXPECT_EQ(values[i].value<float>(), taken ? i * i : i + i);
  }
}

TEST_F(Cond, HasAnUnknownDimensionWhereTheBranchesDiffer) {
  const Output y = cond(
      s_, pred_,
      [](const Scope& s) {
        return Outputs{zeros(s, DType::f32, {2, 3})};
      },
      [](const Scope& s) {
        return Outputs{ones(s, DType::f32, {4, 3})};
      })[0];
  EXPECT_EQ(y.shape().to_string(), "[?,3]");
  EXPECT_EQ(run(y, true).shape(), Shape({2, 3}));
  EXPECT_EQ(run(y, false).shape(), Shape({4, 3}));
  record_op_check("BranchJoin", OpCheck::shape);
}

TEST_F(Cond, RefusesBranchesThatDoNotMatch) {
  const auto one = [](const Scope& s) { return Outputs{constant(s, 1.0f)}; };
  EXPECT_THAT([&] { cond(s_, pred_, one, [](const Scope&) { return Outputs{}; }); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("must return the same number of outputs")));
  EXPECT_THAT(
      [&] { cond(s_, pred_, one, [](const Scope& s) { return Outputs{constant(s, Tensor::scalar(1))}; }); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("output 0 of if_true is f32 and of if_false i32")));
  EXPECT_THAT([&] { cond(s_, constant(s_, 1.0f), one, one); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("must be a bool scalar")));
}

TEST_F(Cond, RefusesAVariableThatIsMadeInABranch) {
  EXPECT_THAT(
      [&] {
        cond(
            s_, pred_, [](const Scope& s) { return Outputs{Variable(s, constant(s, 1.0f)).read()}; },
            [](const Scope& s) { return Outputs{constant(s, 1.0f)}; });
      },
      ThrowsMessage<FailedPreconditionError>(HasSubstr("make it outside and use it in the branch")));
}

class CondGradient : public ::testing::TestWithParam<bool> {};

TEST_P(CondGradient, IsThatOfTheBranchTakenAndZeroForWhatTheOtherUses) {
  expect_gradients({test_numbers({3}), test_numbers({3}, 1)}, [](Scope& s, const Outputs& x) {
    const Output pred = constant(s, Tensor::scalar(GetParam()));
    const Output y = cond(
        s, pred, [&](const Scope& b) { return Outputs{mul(b, x[0], mul(b, x[0], x[1]))}; },
        [&](const Scope& b) { return Outputs{mul(b, x[0], constant(b, test_numbers({3}, 2)))}; })[0];
    return mul(s, y, x[0]);
  });
}

TEST_P(CondGradient, OfAnInputThatABranchReturnsAsItIs) {
  expect_gradients({test_numbers({3}), test_numbers({3}, 1)}, [](Scope& s, const Outputs& x) {
    return cond(
        s, constant(s, Tensor::scalar(GetParam())), [&](const Scope&) { return Outputs{x[0]}; },
        [&](const Scope&) { return Outputs{x[1]}; })[0];
  });
}

TEST_P(CondGradient, FlowsThroughNestedBranches) {
  expect_gradients({test_numbers({2}), test_numbers({2}, 1)}, [](Scope& s, const Outputs& x) {
    const Output yes = constant(s, Tensor::scalar(true)), pred = constant(s, Tensor::scalar(GetParam()));
    return cond(
        s, yes,
        [&](const Scope& b) {
          const Output square = mul(b, x[0], x[0]);
          return cond(
              b, pred, [&](const Scope& c) { return Outputs{mul(c, square, x[1])}; },
              [&](const Scope& c) { return Outputs{mul(c, square, square)}; });
        },
        [&](const Scope& b) { return Outputs{zeros_like(b, x[1])}; })[0];
  });
}

INSTANTIATE_TEST_SUITE_P(Taken, CondGradient, ::testing::Bool());

TEST(TakenOrZeros, HasTheShapeOfWhatItStandsFor) {
  Graph graph;
  const Scope s(graph);
  const Output y = s.add("TakenOrZeros", {placeholder(s, DType::f32), zeros(s, DType::f32, {2, 3})});
  EXPECT_EQ(y.shape(), Shape({2, 3}));
  record_op_check("TakenOrZeros", OpCheck::shape);
}

TEST(TakenOrZeros, IsDifferentiable) {
  expect_gradients({test_numbers({3}), test_numbers({3}, 1)},
                   [](Scope& s, const Outputs& x) {
                     return Output(s.add("TakenOrZeros", {x[0], x[1]}));
                   },
                   {.constant = {1}});
}

class CaseOf : public ::testing::Test {
 protected:
  Output choose(bool exclusive) {
    std::vector<std::pair<Output, Branch>> cases;
    for (int i = 0; i < 2; ++i) {
      conditions_.push_back(placeholder(s_, DType::boolean, Shape{}));
      cases.emplace_back(conditions_[i],
                         [i](const Scope& s) { return Outputs{constant(s, static_cast<float>(i))}; });
    }
    return case_of(
        s_, cases, [](const Scope& s) { return Outputs{constant(s, 9.0f)}; }, exclusive)[0];
  }
  float value(const Output& y, bool a, bool b) {
    return Session(graph_)
        .run(y, {{conditions_[0], Tensor::scalar(a)}, {conditions_[1], Tensor::scalar(b)}})
        .value<float>();
  }
  Graph graph_;
  Scope s_{graph_};
  Outputs conditions_;
};

TEST_F(CaseOf, TakesTheFirstThatIsTrueOrElseTheLast) {
  const Output y = choose(false);
  EXPECT_EQ(value(y, true, true), 0);
  EXPECT_EQ(value(y, false, true), 1);
  EXPECT_EQ(value(y, false, false), 9);
}

TEST_F(CaseOf, RefusesTwoTrueConditionsThatExcludeEachOther) {
  const Output y = choose(true);
  EXPECT_EQ(value(y, false, true), 1);
  EXPECT_THAT([&] { value(y, true, true); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("more than 1 conditions evaluated as True")));
  record_op_check("CheckExclusive", OpCheck::value);
  record_op_check("CheckExclusive", OpCheck::shape);
}

TEST(Tuple, GivesNothingBeforeAllIsThere) {
  Graph graph;
  const Scope s(graph);
  std::vector<std::int64_t> calls;
  testing::on_call = [&](std::int64_t tag) { calls.push_back(tag); };
  const Outputs gated = tuple(s, {call(s, 1), call(s, 2)}, {call(s, 3).node});
  EXPECT_EQ(Session(graph).run(gated[0]).value<float>(), 1);
  testing::on_call = [](std::int64_t) {};
  EXPECT_THAT(calls, ::testing::UnorderedElementsAre(1, 2, 3));
}

TEST(WithDependencies, PassesTheValueOnAfterThem) {
  Graph graph;
  const Scope s(graph);
  std::vector<std::int64_t> calls;
  testing::on_call = [&](std::int64_t tag) { calls.push_back(tag); };
  EXPECT_EQ(Session(graph).run(with_dependencies(s, {call(s, 5).node}, constant(s, 2.0f))).value<float>(), 2);
  testing::on_call = [](std::int64_t) {};
  EXPECT_THAT(calls, ElementsAre(5));
}

TEST_F(Cond, GivesTexts) {
  Graph graph;
  const Scope s(graph);
  const Output pred = placeholder(s, DType::boolean, Shape{});
  const auto text = [](const char* letters) {
    return [=](const Scope& b) { return Outputs{constant(b, Tensor::scalar(std::string(letters)))}; };
  };
  const Output y = cond(s, pred, Branch(text("yes")), Branch(text("no")))[0];
  Session session(graph);
  EXPECT_EQ(session.run(y, {{pred, Tensor::scalar(true)}}).value<std::string>(), "yes");
  EXPECT_EQ(session.run(y, {{pred, Tensor::scalar(false)}}).value<std::string>(), "no");
}

}  // namespace
}  // namespace kolo
