#include <kolo/core/training/hooks.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/summaries.h>
#include <kolo/core/training/global_step.h>

namespace kolo {

SummarySaverHook::SummarySaverHook(SummarySaverOptions options)
    : options_(std::move(options)), timer_(options_.save_secs, options_.save_steps) {
  if (!options_.summary_writer)
    throw InvalidArgumentError("SummarySaverHook: there is no summary_writer to write with");
}

void SummarySaverHook::begin(Graph& graph) {
  require_global_step(graph, "SummarySaverHook");
  if (options_.summary_op) summaries_ = options_.summary_op;
  else if (!summaries_) summaries_ = summary::merge_all(Scope(graph));
  timer_ = StepTimer(options_.save_secs, options_.save_steps);
  has_run_ = false;
}

SessionRunArgs SummarySaverHook::before_run(RunContext& context) {
  is_due_ = !has_run_ || timer_.is_due(context.global_step().value() + 1);
  SessionRunArgs args;
  if (is_due_ && summaries_) args.fetches.emplace_back(summaries_);
  return args;
}

void SummarySaverHook::after_run(RunContext& context, const RunValues& values) {
  const std::int64_t step = context.global_step().value();
  if (!std::exchange(has_run_, true)) {
    options_.summary_writer->add_graph(context.session().graph(), step);
    options_.summary_writer->add_session_log(SessionStatus::start, step);
  }
  if (!is_due_) return;
  timer_.fired(step);
  if (summaries_) options_.summary_writer->add_summary(values.results.at(0), step);
}

void SummarySaverHook::end(Session&) { options_.summary_writer->flush(); }

}  // namespace kolo
