// What a run is asked for, looked up in the graph and checked.
#pragma once

#include <vector>

#include <kolo/core/graph/graph.h>
#include <kolo/core/passes/prune.h>
#include <kolo/core/runtime/fetch.h>
#include <kolo/core/runtime/plan_cache.h>

namespace kolo::detail {

/// With nodes instead of names.
struct StepRequest {
  std::vector<Fetch> fetches;
  std::vector<Fetch> targets;
  Feeds feeds;
};

/// Throws as Session::run does for what does not fit the graph.
StepRequest checked_request(const Graph& graph, const std::vector<Fetch>& fetches, const Feeds& feeds,
                            const std::vector<Fetch>& targets);
/// The tensor that a feed replaces, checked against the graph.
Output checked_feed_target(const Graph& graph, const FeedTarget& target);
/// Throws InvalidArgumentError unless `value` can stand for `target`.
void check_feed_value(const Output& target, const Tensor& value);

PlanCache::Key key_of(const StepRequest& request);
StepSignature signature_of(const StepRequest& request);
/// Throws InvalidArgumentError `Retval[<i>] does not have value` for a fetch of a branch that the run in
/// `frame` did not take.
void check_results(const Plan& plan, const Frame& frame, const StepRequest& request);

}  // namespace kolo::detail
