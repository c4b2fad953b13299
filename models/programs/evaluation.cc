#include <kolo/models/programs/evaluation.h>

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/text.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/exchange_numbers.h>
#include <kolo/core/runtime/group.h>
#include <kolo/optimizer/broadcast_hook.h>

namespace kolo::models {

AnswerCheck::AnswerCheck(const Scope& s, Output logits, Output samples, Output labels)
    : samples_(samples), labels_(labels) {
  const Scope scope = s.name_scope("accuracy");
  const Output right = equal(scope, argmax(scope, logits), cast(scope, labels, DType::i64));
  right_ = reduce_sum(scope, cast(scope, right, DType::f32));
  loss_ = softmax_cross_entropy(s.name_scope("test_loss"), logits, labels);
}

Evaluation evaluate_on_all_ranks(Session& session, const AnswerCheck& check,
                                 const std::shared_ptr<const SampleSet>& test, const BatchOptions& options) {
  EvaluationBatches batches(test, options);
  std::int64_t correct = 0;
  double loss = 0;
  for (Batch batch; batches.next(batch);) {
    const auto found = session.run({check.right(), check.loss()},
                                   {{check.samples(), batch.samples}, {check.labels(), batch.labels}});
    correct += std::lround(found[0].value<float>());
    loss += found[1].value<float>() * static_cast<double>(batch.labels.elements());
  }
  Evaluation evaluation;
  evaluation.labels = test->size() * test->kind().labels;
  const std::vector<double> own = {static_cast<double>(correct), loss};
  for (const std::vector<double>& theirs : kolo::detail::allgather_numbers(world_group(), own)) {
    evaluation.correct += std::lround(theirs.at(0));
    evaluation.loss_sum += theirs.at(1);
  }
  return evaluation;
}

void EvaluationHook::end(Session& session) {
  if (!skip_) result_ = evaluate(session);
}

std::optional<Evaluation> EvaluationHook::evaluate(Session& session) const {
  if (!test_) return std::nullopt;
  // Moving averages are each rank's own. What is evaluated is what was saved: rank 0's.
  std::vector<Variable> averages;
  for (const Operation& update : update_ops(check_.right().node->graph()))
    averages.push_back(Variable::of(*update.node->input(0).node));
  if (!averages.empty()) broadcast_variables(session, averages, 0);
  if (swap_averages_) session.run(swap_averages_);
  const Evaluation found = evaluate_on_all_ranks(session, check_, test_, batches_);
  if (swap_averages_) session.run(swap_averages_);
  return found;
}

}  // namespace kolo::models
