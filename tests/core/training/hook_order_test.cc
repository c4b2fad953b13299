// The order of what several hooks are told, however a training goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/training/monitored_session.h>

#include "tests/core/training/counting_graph.h"

namespace kolo {
namespace {

using testing::ElementsAre;

using Calls = std::vector<std::string>;

// Notes what it is told, behind its name.
class Noting : public SessionRunHook {
 public:
  Noting(std::string name, Calls& calls, std::string throws_in = "")
      : name_(std::move(name)), calls_(&calls), throws_in_(std::move(throws_in)) {}
  void begin(Graph&) override { note("begin"); }
  void after_create_session(Session&) override { note("created"); }
  SessionRunArgs before_run(RunContext&) override {
    note("before");
    return {};
  }
  void after_run(RunContext&, const RunValues&) override { note("after"); }
  void after_failure(RunContext&, const SessionRunArgs&, const Error&) override { note("failed"); }
  void end(Session&) override { note("end"); }

 private:
  void note(const std::string& what) {
    calls_->push_back(name_ + ' ' + what);
    if (what == throws_in_) throw DataLossError("{} of {}", what, name_);
  }
  std::string name_;
  Calls* calls_;
  std::string throws_in_;
};

// Two hooks around one run of `fetch`, then the end.
Calls told(CountingGraph& model, const Fetch& fetch, const Feeds& feeds, const std::string& a_throws_in = "",
           const std::string& b_throws_in = "") {
  Calls calls;
  try {
    MonitoredTrainingSession sess(model.graph,
                                  {.hooks = {std::make_shared<Noting>("a", calls, a_throws_in),
                                             std::make_shared<Noting>("b", calls, b_throws_in)}});
    calls.clear();
    sess.run({fetch}, feeds);
    sess.close();
  } catch (const Error&) {
    calls.emplace_back("thrown");
  }
  return calls;
}

TEST(HookOrder, IsThatOfTheListAtTheStart) {
  CountingGraph model;
  Calls calls;
  const MonitoredTrainingSession sess(
      model.graph, {.hooks = {std::make_shared<Noting>("a", calls), std::make_shared<Noting>("b", calls)}});
  EXPECT_THAT(calls, ElementsAre("a begin", "b begin", "a created", "b created"));
}

TEST(HookOrder, IsThatOfTheListAroundARunAndAtTheEnd) {
  CountingGraph model;
  EXPECT_THAT(told(model, model.train, {}),
              ElementsAre("a before", "b before", "a after", "b after", "a end", "b end"));
}

TEST(HookOrder, LeavesTheEndOutWhereARunFails) {
  CountingGraph model;
  const Output x = placeholder(model.s, DType::f32, {2});
  EXPECT_THAT(told(model, identity(model.s, x), {}),
              ElementsAre("a before", "b before", "a failed", "b failed", "thrown"));
}

TEST(HookOrder, AsksNobodyBehindAHookThatFailsBeforeTheRun) {
  CountingGraph model;
  EXPECT_THAT(told(model, model.train, {}, "before"), ElementsAre("a before", "thrown"));
}

TEST(HookOrder, AsksNobodyBehindAHookThatFailsAfterTheRun) {
  CountingGraph model;
  EXPECT_THAT(told(model, model.train, {}, "after"),
              ElementsAre("a before", "b before", "a after", "thrown"));
  EXPECT_THAT(told(model, model.train, {}, "", "after"),
              ElementsAre("a before", "b before", "a after", "b after", "thrown"));
}

TEST(HookOrder, EndsAllHooksWhereTheDataEnd) {
  CountingGraph model;
  Calls calls;
  class Ends : public SessionRunHook {
    SessionRunArgs before_run(RunContext&) override { throw OutOfRangeError("no more data"); }
  };
  {
    MonitoredTrainingSession sess(model.graph,
                                  {.hooks = {std::make_shared<Noting>("a", calls), std::make_shared<Ends>(),
                                             std::make_shared<Noting>("b", calls)}});
    calls.clear();
    sess.run(model.train);
    EXPECT_TRUE(sess.should_stop());
  }
  EXPECT_THAT(calls, ElementsAre("a before", "a end", "b end"));
}

}  // namespace
}  // namespace kolo
