#include <kolo/core/training/stop_at_step_hook.h>

#include <kolo/core/base/error.h>

namespace kolo {

StopAtStepHook::StopAtStepHook(StopAtStepOptions options)
    : num_steps_(options.num_steps), last_step_(options.last_step) {
  if (!num_steps_ && !last_step_)
    throw InvalidArgumentError("One of num_steps or last_step must be specified.");
  if (num_steps_ && last_step_)
    throw InvalidArgumentError("Only one of num_steps or last_step can be specified.");
}

void StopAtStepHook::begin(Graph& graph) { global_step_ = require_global_step(graph, "StopAtStepHook"); }

void StopAtStepHook::after_create_session(Session& session) {
  // After a recovery the count goes on from where the first session began.
  if (!last_step_) last_step_ = read_global_step(session, global_step_) + *num_steps_;
}

SessionRunArgs StopAtStepHook::before_run(RunContext& context) {
  if (read_global_step(context.session(), global_step_) + 1 >= *last_step_) context.announce_last_step();
  return {};
}

void StopAtStepHook::after_run(RunContext& context, const RunValues&) {
  if (read_global_step(context.session(), global_step_) >= *last_step_) context.request_stop();
}

}  // namespace kolo
