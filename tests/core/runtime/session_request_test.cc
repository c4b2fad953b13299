// What a run may be asked for, in which forms, and what it says where something does not fit.
#include <gmock/gmock.h>

#include <array>
#include <map>
#include <tuple>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <tests/core/test_ops.h>

namespace kolo {
namespace {

using testing::add;
using ::testing::AllOf;
using testing::call;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor vector_of(std::initializer_list<float> values) {
  return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, values);
}

template <typename Error, typename Function>
void expect_error(const Function& run, const std::string& words) {
  EXPECT_THAT(run, ThrowsMessage<Error>(HasSubstr(words)));
}

class SessionRequest : public ::testing::Test {
 protected:
  Graph graph;
  const Scope s{graph};
  const Output x = placeholder(s.named("x"), DType::f32, {2});
  const Output y = s.named("y").add("TestAdd", {x, x});
  const Operation nothing = no_op(s.named("nothing"));
  const Feeds feeds = {{x, vector_of({1, 2})}};
  Session session{graph};
};

TEST_F(SessionRequest, FetchesTensorsAndRunsOperationsByName) {
  const auto results = session.run({"y:0", "nothing", "y"}, feeds);
  EXPECT_THAT(results[0].span<float>(), ElementsAre(2, 4));
  EXPECT_FALSE(results[1]);
  EXPECT_FALSE(results[2]) << "a name without an index is an operation";
  EXPECT_THAT(session.run("y:0", feeds).span<float>(), ElementsAre(2, 4));
  EXPECT_THAT(session.run(std::string("y:0"), feeds).span<float>(), ElementsAre(2, 4));
  EXPECT_EQ(session.run({"y:0", "x:0"}, feeds).size(), 2u);
}

TEST_F(SessionRequest, FeedsByName) {
  EXPECT_THAT(session.run(y, {{"x:0", vector_of({3, 4})}}).span<float>(), ElementsAre(6, 8));
  EXPECT_THAT(session.run(y, {{"x", vector_of({5, 6})}}).span<float>(), ElementsAre(10, 12));
}

TEST_F(SessionRequest, RunsTargetsBesideTheFetchesWithoutAResult) {
  int calls = 0;
  testing::on_call = [&](std::int64_t) { ++calls; };
  const Output effect = call(s.named("effect"), 1);
  EXPECT_EQ(session.run({y}, feeds, Targets{effect.node->name(), nothing}).size(), 1u);
  EXPECT_EQ(session.run({}, {}, Targets{Operation(effect)}).size(), 0u);
  EXPECT_EQ(calls, 2);
  testing::on_call = [](std::int64_t) {};
}

TEST_F(SessionRequest, GivesResultsInTheStructureOfTheFetches) {
  const Variable v(s.named("v"), constant(s, 7.0f));
  session.run(global_variables_initializer(s));
  const Outputs pair = {y, x};
  const auto [single, list, variable] = session.run(std::tuple{y, pair, v}, feeds);
  EXPECT_THAT(single.span<float>(), ElementsAre(2, 4));
  EXPECT_THAT(list.at(1).span<float>(), ElementsAre(1, 2));
  EXPECT_EQ(variable.value<float>(), 7);

  const auto named =
      session.run(std::map<std::string, std::tuple<Output, Operation>>{{"a", {x, nothing}}}, feeds);
  EXPECT_THAT(std::get<0>(named.at("a")).span<float>(), ElementsAre(1, 2));
  EXPECT_FALSE(std::get<1>(named.at("a")));

  EXPECT_EQ(session.run(std::pair{std::array<Output, 2>{x, y}, y}, feeds).first[1].data<float>()[1], 4);
  EXPECT_EQ(session.run(pair, feeds).size(), 2u);
}

TEST_F(SessionRequest, FetchesOneTensorTwice) {
  const auto results = session.run({y, y}, feeds);
  EXPECT_THAT(results[1].span<float>(), ElementsAre(2, 4));
  EXPECT_NE(results[0].raw(), results[1].raw());
}

TEST_F(SessionRequest, RunsTheProducerOfAFedTensorWhereAControlEdgeNeedsIt) {
  int calls = 0;
  testing::on_call = [&](std::int64_t) { ++calls; };
  const Output a = call(s, 1), one = constant(s, 1.0f), two = add(s.control_dependencies({a}), one, one);
  EXPECT_EQ(session.run(add(s, a, two), {{a, Tensor::scalar(5.0f)}}).value<float>(), 7);
  EXPECT_EQ(calls, 1);
  testing::on_call = [](std::int64_t) {};
}

// Row 40 of the worked examples.
TEST_F(SessionRequest, DoesNotRunAnExpensiveOpWhoseOutputIsFed) {
  int calls = 0;
  testing::on_call = [&](std::int64_t) { ++calls; };
  const Output expensive = call(s, 1), z = add(s, expensive, expensive);
  EXPECT_EQ(session.run(z, {{expensive, Tensor::scalar(2.0f)}}).value<float>(), 4);
  EXPECT_EQ(calls, 0);
  testing::on_call = [](std::int64_t) {};
}

// Row 39 of the worked examples.
TEST_F(SessionRequest, RefusesToDoNothing) {
  const std::string words = "Must specify at least one target to fetch or execute.";
  expect_error<InvalidArgumentError>([&] { session.run(std::vector<Fetch>{}); }, words);
  expect_error<InvalidArgumentError>([&] { session.run({}, feeds, Targets{}); }, words);
}

TEST_F(SessionRequest, RefusesAnEmptyGraph) {
  Graph empty;
  expect_error<FailedPreconditionError>(
      [&] { Session(empty).run(y, feeds); },
      "The Session graph is empty.  Add operations to the graph before calling run().");
}

TEST_F(SessionRequest, NamesFetchesThatAreNotThere) {
  const auto fetch = [&](const Fetch& what) { return [&, what] { session.run({what}, feeds); }; };
  EXPECT_THAT(
      fetch("z:0"),
      ThrowsMessage<NotFoundError>(
          AllOf(HasSubstr("FetchOutputs node z:0: not found"),
                HasSubstr("Fetch argument z:0 cannot be interpreted as a Tensor."),
                HasSubstr("The name 'z:0' refers to a Tensor which does not exist. The operation, 'z', does "
                          "not exist in the graph."))));
  expect_error<NotFoundError>(fetch("z"), "The name 'z' refers to an Operation not in the graph.");
  EXPECT_THAT(fetch("y:1"), ThrowsMessage<InvalidArgumentError>(
                                AllOf(HasSubstr("FetchOutputs y:1: output index too large, must be < 1"),
                                      HasSubstr("The operation, 'y', exists but only has 1 outputs."))));
  expect_error<InvalidArgumentError>(fetch("y:first"), "'y:first' is not the name of a tensor");
  const std::string no_output = "Tried to fetch data for 'nothing:0', which produces no output.";
  expect_error<InvalidArgumentError>(fetch("nothing:0"), no_output);
  expect_error<InvalidArgumentError>(fetch(Output{nothing.node, 0}), no_output);
  expect_error<InvalidArgumentError>(fetch(Output()), "cannot be interpreted as a Tensor.");
}

TEST_F(SessionRequest, NamesAllTargetsThatAreNotThere) {
  expect_error<NotFoundError>(
      [&] {
        session.run({y}, feeds, Targets{"nothing", "one", "two"});
      },
      "PruneForTargets: Some target nodes not found: one two");
}

TEST_F(SessionRequest, NamesFeedsThatAreNotThere) {
  const auto feed = [&](const std::string& name) {
    return [&, name] { session.run(y, {{name, vector_of({1, 2})}}); };
  };
  EXPECT_THAT(feed("z:0"), ThrowsMessage<NotFoundError>(
                               AllOf(HasSubstr("FeedInputs: unable to find feed output z:0"),
                                     HasSubstr("The operation, 'z', does not exist in the graph."))));
  expect_error<InvalidArgumentError>(feed("x:1"), "FeedInputs: x:1 should have output index < 1");
}

TEST_F(SessionRequest, RefusesWhatIsOfAnotherGraph) {
  Graph other;
  const Scope theirs(other);
  const Output foreign = constant(theirs.named("foreign"), 1.0f);
  const std::string words = "Tensor foreign:0 is not an element of this graph.";
  expect_error<InvalidArgumentError>([&] { session.run(foreign); }, words);
  expect_error<InvalidArgumentError>([&] { session.run(y, {{foreign, Tensor::scalar(1.0f)}}); }, words);
  expect_error<InvalidArgumentError>([&] { session.run(Operation(no_op(theirs))); },
                                     "is not an element of this graph.");
}

TEST_F(SessionRequest, TakesWhoWaitsForAPlaceholderForOneWhoWaitsForItsFeed) {
  const Output one = constant(s, 1.0f);
  const Output later = add(s.control_dependencies({x}), one, one);
  const Outputs gated = tuple(s, {x, y});
  const auto results = session.run({later, gated[0], gated[1]}, feeds, Targets{Operation(x)});
  EXPECT_EQ(results[0].value<float>(), 2);
  EXPECT_THAT(results[1].span<float>(), ElementsAre(1, 2));
  EXPECT_THAT(results[2].span<float>(), ElementsAre(2, 4));
  expect_error<InvalidArgumentError>([&] { session.run(later); }, "You must feed a value for placeholder");
}

TEST_F(SessionRequest, RunsTheEffectOfAFedOpThatAControlEdgeNeeds) {
  int calls = 0;
  testing::on_call = [&](std::int64_t) { ++calls; };
  const Output effect = call(s, 1), one = constant(s, 1.0f);
  const Output later = add(s, add(s.control_dependencies({effect}), one, one), effect);
  EXPECT_EQ(session.run(later, {{effect, Tensor::scalar(5.0f)}}).value<float>(), 7);
  EXPECT_EQ(calls, 1);
  testing::on_call = [](std::int64_t) {};
}

TEST_F(SessionRequest, RefusesToFeedATensorTwiceUnderWhateverName) {
  expect_error<InvalidArgumentError>(
      [&] {
        session.run(y, {{x, vector_of({1, 2})}, {"x:0", vector_of({1, 2})}});
      },
      "Endpoint \"x:0\" fed more than once.");
}

TEST_F(SessionRequest, KeepsWorkingAfterARefusal) {
  EXPECT_THROW(session.run("z:0"), NotFoundError);
  EXPECT_THAT(session.run(y, feeds).span<float>(), ElementsAre(2, 4));
}

// Row 38 of the worked examples.
TEST_F(SessionRequest, NamesThePlaceholderThatWasNotFed) {
  const Output p = placeholder(s.named("p"), DType::f32), twice = add(s, p, p);
  expect_error<InvalidArgumentError>([&] { session.run(twice); },
                                     "You must feed a value for placeholder tensor 'p' with dtype float");
  expect_error<InvalidArgumentError>(
      [&] { session.run(y); },
      "You must feed a value for placeholder tensor 'x' with dtype float and shape [2]");
  expect_error<InvalidArgumentError>([&] { session.run(y); }, "Placeholder on");
}

TEST_F(SessionRequest, RunsNodesThatWereAddedAfterTheirInputsHadRun) {
  session.run(y, feeds);
  const Output later = add(s, y, y);
  EXPECT_THAT(session.run(later, feeds).span<float>(), ElementsAre(4, 8));
}

TEST(PlaceholderWithDefault, IsItsDefaultUnlessFed) {
  Graph graph;
  const Scope s(graph);
  const Output p = placeholder_with_default(s.named("p"), constant(s, vector_of({1, 2})), {-1});
  const Output twice = add(s, p, p);
  EXPECT_EQ(p.shape(), Shape({-1}));
  Session session(graph);
  EXPECT_THAT(session.run(twice).span<float>(), ElementsAre(2, 4));
  EXPECT_THAT(session.run(twice, {{p, vector_of({1, 2, 3})}}).span<float>(), ElementsAre(2, 4, 6));
  EXPECT_THAT(session.run(p).span<float>(), ElementsAre(1, 2));
}

TEST(PlaceholderWithDefault, LeavesItsDefaultAloneWhereItIsFedAndWaitedFor) {
  Graph graph;
  const Scope s(graph);
  int calls = 0;
  testing::on_call = [&](std::int64_t) { ++calls; };
  const Output p = placeholder_with_default(s, call(s, 7), {});
  const Output later = identity(s.control_dependencies({p}), constant(s, 1.0f));
  Session session(graph);
  session.run(later, {{p, Tensor::scalar(2.0f)}});
  EXPECT_EQ(calls, 0);
  session.run(later);
  EXPECT_EQ(calls, 1);
  testing::on_call = [](std::int64_t) {};
}

TEST(PlaceholderWithDefault, RefusesADefaultThatDoesNotFit) {
  Graph graph;
  const Scope s(graph);
  expect_error<InvalidArgumentError>([&] { placeholder_with_default(s, constant(s, 1.0f), {2}); },
                                     "the default is [], which does not fit [2]");
}

}  // namespace
}  // namespace kolo
