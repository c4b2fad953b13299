#include <kolo/core/training/loop_hooks.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

namespace kolo {

FeedFnHook::FeedFnHook(std::function<Feeds()> feed_fn) : feed_fn_(std::move(feed_fn)) {
  if (!feed_fn_) throw InvalidArgumentError("FeedFnHook: there is no function to ask for feeds");
}

SessionRunArgs FeedFnHook::before_run(RunContext&) {
  SessionRunArgs args;
  args.feeds = feed_fn_();
  return args;
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
