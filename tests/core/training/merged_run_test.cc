// How the wishes of the caller and of several hooks become one run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stop_token>

#include <kolo/core/base/error.h>
#include <kolo/core/training/hook_internal.h>
#include <kolo/core/training/monitored_session.h>

#include "tests/core/training/counting_graph.h"

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

SessionRunArgs wishing(const RunOptions& options) {
  SessionRunArgs args;
  args.options = options;
  return args;
}

// The options of a run for which the caller, then two hooks, wish for these.
RunOptions merged(const RunOptions& callers, const RunOptions& a, const RunOptions& b) {
  detail::MergedRun run(wishing(callers));
  run.add(wishing(a));
  run.add(wishing(b));
  return run.args().options;
}

TEST(MergedRunOptions, AreTheLargestOfEach) {
  const RunOptions options = merged({.trace_level = TraceLevel::software_trace, .timeout_in_ms = 100},
                                    {.trace_level = TraceLevel::full_trace, .inter_op_thread_pool = 1},
                                    {.timeout_in_ms = 300, .inter_op_thread_pool = 2});
  EXPECT_EQ(options.trace_level, TraceLevel::full_trace);
  EXPECT_EQ(options.timeout_in_ms, 300);
  EXPECT_EQ(options.inter_op_thread_pool, 2);
}

TEST(MergedRunOptions, LeaveTheCallersThreadAloneWhereNoHookWantsAPool) {
  EXPECT_EQ(merged({.inter_op_thread_pool = -1}, {}, {}).inter_op_thread_pool, -1);
  EXPECT_EQ(merged({.inter_op_thread_pool = -1}, {.inter_op_thread_pool = 1}, {}).inter_op_thread_pool, 1);
}

// A hook that asks for the same options in every run.
struct Wishing : SessionRunHook {
  explicit Wishing(RunOptions wished) : options(wished) {}
  SessionRunArgs before_run(RunContext&) override { return wishing(options); }
  RunOptions options;
};

TEST(MergedRunOptions, StopTheRunByTheTokenOfAnyHook) {
  CountingGraph model;
  std::stop_source first, second;
  MonitoredTrainingSession sess(
      model.graph, {.hooks = {std::make_shared<Wishing>(RunOptions{.stop_token = first.get_token()}),
                              std::make_shared<Wishing>(RunOptions{.stop_token = second.get_token()})}});
  sess.run(model.train);
  second.request_stop();
  EXPECT_THROW(sess.run(model.train), CancelledError);
}

TEST(MergedRunOptions, BringAHooksPoolToTheSession) {
  CountingGraph model;
  MonitoredTrainingSession sess(
      model.graph, {.hooks = {std::make_shared<Wishing>(RunOptions{.inter_op_thread_pool = 7})}});
  EXPECT_THAT([&] { sess.run(model.train); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("7")));
}

}  // namespace
}  // namespace kolo
