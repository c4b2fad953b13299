#include <kolo/core/training/hooks.h>

#include <fmt/format.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/summary/summary_writer.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/global_step.h>

namespace kolo {

EvaluationHook::EvaluationHook(EvaluationOptions options) : options_(std::move(options)) {
  if (!options_.evaluate) throw InvalidArgumentError("EvaluationHook: there is no function that evaluates");
  if (options_.every_n_steps < 1)
    throw InvalidArgumentError("EvaluationHook: every_n_steps is {}; it must be at least 1",
                               options_.every_n_steps);
}

void EvaluationHook::begin(Graph& graph) {
  global_step_ = require_global_step(graph, "EvaluationHook");
  last_.reset();
}

void EvaluationHook::after_create_session(Session& session) {
  step_ = read_global_step(session, global_step_);
}

void EvaluationHook::after_run(RunContext& context, const RunValues&) {
  const std::int64_t before = std::exchange(step_, *context.global_step());
  if (step_ / options_.every_n_steps != before / options_.every_n_steps) evaluate(context.session(), step_);
}

void EvaluationHook::end(Session& session) {
  if (!last_ || last_->step != step_) evaluate(session, step_);
}

void EvaluationHook::evaluate(Session& session, std::int64_t step) {
  last_ = Result{.step = step, .metrics = options_.evaluate(session)};
  std::string text;
  for (const auto& [name, value] : last_->metrics) {
    text += fmt::format("{}{} = {:g}", text.empty() ? "" : ", ", name, value);
    if (options_.summary_writer) options_.summary_writer->add_summary(scalar_summary(name, value), step);
  }
  if (options_.summary_writer) options_.summary_writer->flush();
  log_info("Evaluation at step {}: {}", step, text);
}

BestMetric::BestMetric(std::shared_ptr<const EvaluationHook> evaluation, MetricOptions options)
    : evaluation_(std::move(evaluation)), options_(std::move(options)) {
  if (!evaluation_) throw InvalidArgumentError("there is no EvaluationHook to listen to");
}

BestMetric::News BestMetric::take() {
  const auto& last = evaluation_->last();
  if (!last || seen_ == last->step) return News::none;
  const auto metric = last->metrics.find(options_.metric);
  if (metric == last->metrics.end())
    throw NotFoundError("the evaluation at step {} has no metric \"{}\"", last->step, options_.metric);
  const bool is_first = !seen_;
  seen_ = step_ = last->step;
  const bool is_better =
      is_first || (options_.larger_is_better ? metric->second > best_ : metric->second < best_);
  if (!is_better) return News::not_better;
  best_ = metric->second;
  best_step_ = step_;
  return News::better;
}

EarlyStoppingHook::EarlyStoppingHook(std::shared_ptr<const EvaluationHook> evaluation,
                                     EarlyStoppingHookOptions options)
    : best_(std::move(evaluation), std::move(options.metric)),
      most_steps_(options.max_steps_without_improvement) {}

void EarlyStoppingHook::after_run(RunContext& context, const RunValues&) {
  if (best_.take() != BestMetric::News::not_better || best_.step() - best_.best_step() < most_steps_) return;
  log_info("No improvement since step {}: the training stops.", best_.best_step());
  context.request_stop();
}

BestCheckpointHook::BestCheckpointHook(std::shared_ptr<const EvaluationHook> evaluation,
                                       BestCheckpointOptions options)
    : evaluation_(std::move(evaluation)), best_(evaluation_, options.metric), options_(std::move(options)) {
  if (options_.checkpoint_dir.empty())
    throw InvalidArgumentError("BestCheckpointHook: there is no checkpoint_dir");
}

void BestCheckpointHook::after_create_session(Session& session) {
  make_checkpoint_folder(options_.checkpoint_dir);
  saver_ = std::make_unique<Saver>(session.graph(), SaverOptions{.max_to_keep = options_.max_to_keep});
}

SessionRunArgs BestCheckpointHook::before_run(RunContext& context) {
  if (evaluation_->is_due_next()) context.announce_save();
  return {};
}

void BestCheckpointHook::after_run(RunContext& context, const RunValues& values) {
  save(context.session(), values.gathered);
}

void BestCheckpointHook::save(Session& session, const GatheredState* gathered) {
  if (best_.take() != BestMetric::News::better) return;
  const std::string path =
      saver_->save(session, options_.checkpoint_dir + "/best.ckpt", best_.step(), {}, gathered);
  log_info("The best so far, {:g}, is saved as {}.", best_.best(), path);
}

}  // namespace kolo
