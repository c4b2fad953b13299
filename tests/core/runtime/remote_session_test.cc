#include <kolo/core/runtime/session.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>

#include "tests/support/simulated_server.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::SimulatedServer;

class RemoteSession : public testing::Test {
 protected:
  RemoteSession() { SimulatedServer::clear(); }

  Graph graph;
  Scope s{graph};
  Variable v{s.named("v"), constant(s, Tensor::of<float>({2}, {1, 2}))};
  Output x = placeholder(s.named("x"), DType::f32, {2});
  Output sum = add(s, v, x);
};

TEST_F(RemoteSession, NamesTargetsThatNobodyServes) {
  EXPECT_THAT([&] { Session(graph, "tcp://h:1"); },
              ThrowsMessage<NotFoundError>(HasSubstr(
                  "No session factory registered for the given session options: {target: \"tcp://h:1\"")));
  EXPECT_THAT([&] { Session(graph, std::string("grpc://h:1")); },
              ThrowsMessage<NotFoundError>(HasSubstr("(link kolo::cluster)")));
  EXPECT_THROW(Session::reset("tcp://h:1"), NotFoundError);
}

TEST_F(RemoteSession, IsLocalWithoutATarget) {
  Session session(graph, "", {.operation_timeout_in_ms = 60'000});
  EXPECT_EQ(session.target(), "");
  EXPECT_EQ(session.config().operation_timeout_in_ms, 60'000);
  session.run(v.initializer());
  EXPECT_EQ(session.run(v).data<float>()[1], 2);
  Session plain(graph, {});
  EXPECT_EQ(plain.target(), "");
}

TEST_F(RemoteSession, RunsWhereItsTargetIsAndLeavesTheVariablesThere) {
  {
    Session session(graph, "simulated://a");
    session.run(v.initializer());
    session.set_variables({{"v", Tensor::of<float>({2}, {5, 6})}});
  }
  Session session(graph, "simulated://a");
  EXPECT_EQ(session.target(), "simulated://a");
  const Tensor result = session.run(sum, {{x, Tensor::of<float>({2}, {10, 20})}});
  EXPECT_EQ(result.data<float>()[1], 26);
  EXPECT_THAT(report_uninitialized_variables(session), ElementsAre());
  Session::reset("simulated://a");
  Session again(graph, "simulated://a");
  EXPECT_THAT(report_uninitialized_variables(again), ElementsAre("v"));
}

TEST_F(RemoteSession, CallsWhatWasBoundThere) {
  Session session(graph, "simulated://a");
  session.run(v.initializer());
  const Callable call = session.make_callable({.feeds = {x}, .fetches = {sum}});
  const std::vector<Tensor> feeds = {Tensor::of<float>({2}, {1, 1})};
  std::vector<Tensor> results = {Tensor(DType::f32, {2})};
  const void* const place = results[0].raw();
  call.run(feeds, results);
  EXPECT_EQ(results[0].data<float>()[1], 3);
  EXPECT_EQ(results[0].raw(), place) << "a result of the right shape is written into";
  EXPECT_THROW(call({}), InvalidArgumentError);
}

TEST_F(RemoteSession, KnowsNothingOfWhatOneProcessKeeps) {
  Session session(graph, "simulated://a");
  EXPECT_THAT([&] { session.kernels({v}); }, ThrowsMessage<UnimplementedError>(HasSubstr("simulated://a")));
  session.close();
  session.close();
  EXPECT_THROW(session.run(v), FailedPreconditionError);
}

TEST_F(RemoteSession, GivesAndTakesVariablesByNameLocallyToo) {
  for (const char* target : {"", "simulated://b"}) {
    Session session(graph, target);
    EXPECT_FALSE(session.get_variables({"v"})[0]) << "it has no value";
    session.set_variables({{"v", Tensor::of<float>({2}, {5, 6})}});
    const Tensor value = session.get_variables({"v"})[0];
    EXPECT_EQ(value.data<float>()[0], 5);
    session.run(assign(s, v, constant(s, Tensor::of<float>({2}, {0, 0}))));
    EXPECT_EQ(value.data<float>()[0], 5) << "the caller's own copy";
    EXPECT_THAT([&] { session.get_variables({"x"}); }, ThrowsMessage<NotFoundError>(HasSubstr("\"x\"")));
    EXPECT_THROW(session.set_variables({{"v", Tensor::scalar(1.0f)}}), InvalidArgumentError);
    ASSERT_EQ(session.list_devices().size(), 1);
    EXPECT_EQ(session.list_devices()[0].type, "CPU");
  }
}

}  // namespace
}  // namespace kolo
