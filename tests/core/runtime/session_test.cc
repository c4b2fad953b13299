#include <kolo/core/runtime/session.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/variables.h>
#include <tests/core/stub_vote.h>
#include <tests/core/test_ops.h>

namespace kolo {
namespace {

using testing::add;
using testing::call;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor vector_of(std::initializer_list<float> values) {
  return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, values);
}

TEST(Session, GivesOneResultForEachFetchInOrderAndNothingForOperations) {
  Graph graph;
  const Scope s(graph);
  const Output a = constant(s, 1.0f), b = constant(s, 2.0f);
  Session session(graph);
  const auto results = session.run({b, Operation(a.node), a, b});
  EXPECT_EQ(results[0].value<float>(), 2);
  EXPECT_FALSE(results[1]);
  EXPECT_EQ(results[2].value<float>(), 1);
  EXPECT_EQ(results[3].value<float>(), 2);
}

TEST(Session, UsesFedValuesInsteadOfTheirProducers) {
  Graph graph;
  const Scope s(graph);
  const Output x = call(s, 7), y = add(s, x, x);
  testing::on_call = [](std::int64_t) { FAIL() << "the fed tensor's producer ran"; };
  Session session(graph);
  EXPECT_EQ(session.run(y, {{x, Tensor::scalar(4.0f)}}).value<float>(), 8);
  testing::on_call = [](std::int64_t) {};
}

TEST(Session, ReturnsTheFedValueOfATensorThatIsFedAndFetched) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s, DType::f32, {-1});
  Session session(graph);
  EXPECT_THAT(session.run(x, {{x, vector_of({1, 2})}}).span<float>(), ElementsAre(1, 2));
}

TEST(Session, RunsWithFeedsOfDifferentShapesInTurn) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s, DType::f32, {-1}), y = add(s, x, identity(s, x));
  Session session(graph);
  EXPECT_THAT(session.run(y, {{x, vector_of({1, 2})}}).span<float>(), ElementsAre(2, 4));
  EXPECT_THAT(session.run(y, {{x, vector_of({1, 2, 3})}}).span<float>(), ElementsAre(2, 4, 6));
  EXPECT_THAT(session.run(y, {{x, vector_of({5, 6})}}).span<float>(), ElementsAre(10, 12));
}

TEST(Session, NamesThePlaceholderThatWasNotFed) {
  Graph graph;
  const Scope s(graph);
  const Output p = placeholder(s.named("p"), DType::f32), y = add(s, p, p);
  Session session(graph);
  EXPECT_THAT([&] { session.run(y); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("You must feed a value for placeholder tensor 'p' with dtype float")));
}

// Row 37 of the worked examples.
TEST(Session, NamesTheVariableThatIsNotInitialized) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  Session session(graph);
  EXPECT_THAT([&] { session.run(add(s, v, v)); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("Attempting to use uninitialized value v")));
}

TEST(Session, KeepsVariablesFromRunToRun) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  const Output more = assign_add(s, v, constant(s, 2.0f));
  Session session(graph);
  session.run(global_variables_initializer(s));
  EXPECT_EQ(session.run(more).value<float>(), 3);
  EXPECT_EQ(session.run(more).value<float>(), 5);
  EXPECT_EQ(session.run(v).value<float>(), 5);
}

TEST(Session, GivesAFetchedVariableItsValueBeforeAnUpdateThatWasCreatedLater) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  const Output more = assign_add(s, v, constant(s, 2.0f));
  Session session(graph, {.inter_op_parallelism_threads = 3, .use_per_session_threads = true});
  session.run(global_variables_initializer(s));
  for (int i = 0; i < 50; ++i) {
    const auto results = session.run({v.read(), more});
    ASSERT_EQ(results[0].value<float>(), 1 + 2 * i);
    ASSERT_EQ(results[1].value<float>(), 3 + 2 * i);
  }
}

TEST(Session, RunsNodesAddedAfterAnEarlierRun) {
  Graph graph;
  const Scope s(graph);
  const Output a = constant(s, 1.0f);
  Session session(graph);
  session.run(a);
  EXPECT_EQ(session.run(add(s, a, a)).value<float>(), 2);
}

TEST(Session, RefusesFeedsThatDoNotFit) {
  Graph graph, other;
  const Scope s(graph);
  const Output x = placeholder(s.named("x"), DType::f32, {2}), foreign = constant(Scope(other), 1.0f);
  const Variable v(s.named("v"), constant(s, 1.0f));
  Session session(graph);
  const auto running = [&](Feeds feeds) { return [&, feeds] { session.run(x, feeds); }; };
  EXPECT_THAT(running({{x, vector_of({1, 2, 3})}}),
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Cannot feed value of shape [3] for Tensor 'x:0', which has shape '[2]'")));
  EXPECT_THAT(running({{x, Tensor::of<std::int32_t>({2}, {1, 2})}}),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("type i32")));
  EXPECT_THAT(running({{x, vector_of({1, 2})}, {x, vector_of({1, 2})}}),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Endpoint \"x:0\" fed more than once.")));
  EXPECT_THAT(running({{foreign, Tensor::scalar(1.0f)}}),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("is not an element of this graph.")));
  EXPECT_THAT(running({{v.ref(), Tensor::scalar(1.0f)}}),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Tensor v:0 may not be fed.")));
}

TEST(Session, BroadcastsAnIntermediateValueThatNobodyReadsLater) {
  Graph graph;
  const Scope s(graph);
  // Both take 64 bytes of the arena, rounded up.
  const Output x = s.add("Square", {fill(s, DType::f32, {4}, 3)}),
               y = s.add("Square", {fill(s, DType::f32, {4, 4}, 2)});
  Session session(graph);
  const Tensor sum = session.run(Output(s.add("Add", {x, y})));
  EXPECT_THAT(sum.span<float>(), ::testing::Each(13));
}

// A node of a step that ranks share; what its vote is told.
struct SharedStep {
  bool broken = false;
  std::string failure, end_of_data;
} shared_step;

class RecordingVote final : public testing::StubVote {
 public:
  void begin() override {
    if (shared_step.broken) throw UnavailableError("rank 1 is gone");
  }
  void leave(StepFlag flag, const std::string& text) override {
    (flag == StepFlag::end_of_data ? shared_step.end_of_data : shared_step.failure) = text;
  }
};

const RegisterOp shared_op(OpSchema("TestShared").input("x", {DType::f32}).output("y").stateful());
const RegisterKernel shared_kernel("TestShared", "CPU", {DType::f32}, [](KernelContext& context) {
  context.output(0).copy_from(context.input(0));
});
const RegisterVote shared_vote("TestShared", [](const Node&, const DeviceSet&) -> std::shared_ptr<StepVote> {
  return std::make_shared<RecordingVote>();
});

TEST(Session, FailsAgainInEveryRunOnceItsGroupIsBroken) {
  Graph graph;
  const Scope s(graph);
  const Output y = s.add("TestShared", {constant(s, 1.0f)});
  Session session(graph);
  shared_step = {};
  session.run(y);
  shared_step.broken = true;
  for (int i = 0; i < 3; ++i) EXPECT_THROW(session.run(y), UnavailableError);
}

TEST(Session, TellsTheOtherRanksWhetherAKernelFailedOrFoundTheEndOfTheData) {
  Graph graph;
  const Scope s(graph);
  const Output y = s.add("TestShared", {call(s, 5)});
  Session session(graph);
  shared_step = {};
  testing::on_call = [](std::int64_t) { throw OutOfRangeError("no more files"); };
  EXPECT_THROW(session.run(y), OutOfRangeError);
  EXPECT_THAT(shared_step.end_of_data, HasSubstr("no more files"));
  EXPECT_EQ(shared_step.failure, "");
  testing::on_call = [](std::int64_t) { throw DataLossError("a bad file"); };
  EXPECT_THROW(session.run(y), DataLossError);
  EXPECT_THAT(shared_step.failure, HasSubstr("a bad file"));
  testing::on_call = [](std::int64_t) {};
}

TEST(Session, RefusesToRunNothing) {
  Graph graph;
  EXPECT_THAT([&] { Session(graph).run(std::vector<Fetch>{}); },
              ThrowsMessage<Error>(HasSubstr("The Session graph is empty.")));
  constant(Scope(graph), 1.0f);
  EXPECT_THAT([&] { Session(graph).run(std::vector<Fetch>{}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Must specify at least one target to fetch or execute.")));
}

TEST(Session, RefusesToRunOnceItIsClosed) {
  Graph graph;
  const Output a = constant(Scope(graph), 1.0f);
  Session session(graph);
  session.run(a);
  session.close();
  session.close();
  EXPECT_THAT([&] { session.run(a); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("Attempted to use a closed Session.")));
}

TEST(Session, RefusesNegativeThreads) {
  Graph graph;
  EXPECT_THROW(Session(graph, {.intra_op_parallelism_threads = -1}), InvalidArgumentError);
}

// Row 36 of the worked examples.
TEST(Session, RunsControlDependenciesCreatedOutside) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s, 1), b = add(s, a, constant(s, 2.0f)), x = constant(s, 3.0f), y = constant(s, 4.0f);
  const Output z = add(s.control_dependencies({a, b}), x, y);
  int calls = 0;
  testing::on_call = [&](std::int64_t) { ++calls; };
  testing::additions = 0;
  Session session(graph, {.inter_op_parallelism_threads = 1, .use_per_session_threads = true});
  EXPECT_EQ(session.run(z).value<float>(), 7);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(testing::additions, 2) << "b and z";
  testing::on_call = [](std::int64_t) {};
}

TEST(Session, ReportsTheVariablesThatHaveNoValueYet) {
  Graph graph;
  const Scope s(graph);
  const Variable a(s.named("a"), constant(s, 1.0f)), b(s.named("b"), constant(s, 2.0f));
  const Variable local(s.named("l"), constant(s, 3.0f), {.local = true});
  Session session(graph);
  EXPECT_THAT(report_uninitialized_variables(session), ElementsAre("a", "b", "l"));
  session.run(b.initializer());
  EXPECT_THAT(report_uninitialized_variables(session), ElementsAre("a", "l"));
  EXPECT_THAT(report_uninitialized_variables(session, {b, local}), ElementsAre("l"));
  Session other(graph);
  EXPECT_THAT(report_uninitialized_variables(other), ElementsAre("a", "b", "l")) << "each has its own";
}

TEST(Session, TakesThePlaceOfAnotherUnderTheSameReference) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  Session session(graph);
  session.run(v.initializer());
  const Callable of_first = session.make_callable({.fetches = {v.read()}});
  session = Session(graph, {.operation_timeout_in_ms = 5000});
  EXPECT_THROW(session.run(v.read()), FailedPreconditionError) << "a session with variables of its own";
  EXPECT_EQ(session.config().operation_timeout_in_ms, 5000);
  session.run(v.initializer());
  EXPECT_EQ(session.run(v.read()).value<float>(), 1);
  EXPECT_THROW(of_first(), FailedPreconditionError) << "closed";
}

}  // namespace
}  // namespace kolo
