#include <kolo/core/training/hooks.h>

#include <chrono>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/training/cluster_start.h>
#include <kolo/core/training/global_step.h>

namespace kolo {

FeedFnHook::FeedFnHook(std::function<Feeds()> feed_fn) : feed_fn_(std::move(feed_fn)) {
  if (!feed_fn_) throw InvalidArgumentError("FeedFnHook: there is no function to ask for feeds");
}

SessionRunArgs FeedFnHook::before_run(RunContext&) {
  SessionRunArgs args;
  args.feeds = feed_fn_();
  return args;
}

void GlobalStepWaiterHook::begin(Graph& graph) {
  global_step_ = require_global_step(graph, "GlobalStepWaiterHook");
}

SessionRunArgs GlobalStepWaiterHook::before_run(RunContext& context) {
  if (std::exchange(has_waited_, true) || wait_until_step_ <= 0) return {};
  log_info("Waiting for global step {} before starting training.", wait_until_step_);
  for (std::int64_t logged = 0;;) {
    const std::int64_t step = read_global_step(context.session(), global_step_);
    if (step >= wait_until_step_) {
      log_info("Done waiting.");
      return {};
    }
    if (step >= logged + 1000)
      log_info("Waiting for global step {}; it is {}.", wait_until_step_, logged = step);
    detail::pause(std::chrono::milliseconds(500), "waiting for the global step");
  }
}

FinalOpsHook::FinalOpsHook(std::vector<Fetch> final_ops, Feeds feeds)
    : final_ops_(std::move(final_ops)), feeds_(std::move(feeds)) {}

void FinalOpsHook::end(Session& session) {
  try {
    if (!final_ops_.empty()) values_ = session.run(final_ops_, feeds_);
  } catch (const OutOfRangeError&) {
    log_error(
        "An OutOfRangeError or StopIteration exception is raised by the code in FinalOpsHook. This typically "
        "means the Ops running by the FinalOpsHook have a dependency back to some input source, which should "
        "not happen.");
    throw;
  }
}

}  // namespace kolo
