#include <kolo/models/programs/evaluation.h>

#include <cmath>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/text.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/group.h>
#include <kolo/models/batches.h>
#include <kolo/optimizer/broadcast_hook.h>

namespace kolo::models {

CorrectCount::CorrectCount(const Scope& s, Output logits, Output images, Output labels)
    : images_(images), labels_(labels) {
  const Scope scope = s.name_scope("accuracy");
  const Output right = equal(scope, argmax(scope, logits), cast(scope, labels, DType::i64));
  count_ = reduce_sum(scope, cast(scope, right, DType::f32));
}

Evaluation evaluate_on_all_ranks(Session& session, const CorrectCount& count, const Dataset& test,
                                 std::int64_t batch_size) {
  EvaluationBatches batches(test,
                            {.batch_size = batch_size, .rank = process().rank, .ranks = process().size});
  std::int64_t correct = 0;
  for (Batch batch; batches.next(batch);) {
    const Tensor right =
        session.run(count.count(), {{count.images(), batch.images}, {count.labels(), batch.labels}});
    correct += std::lround(right.value<float>());
  }
  Evaluation evaluation;
  evaluation.samples = test.size();
  for (const std::string& theirs : world_group().allgather(std::to_string(correct))) {
    const auto value = parse_int64(theirs);
    if (!value) throw InternalError("a rank reported \"{}\" as its count of right answers", theirs);
    evaluation.correct += *value;
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
  for (const Operation& update : update_ops(count_.count().node->graph()))
    averages.push_back(Variable::of(*update.node->input(0).node));
  if (!averages.empty()) broadcast_variables(session, averages, 0);
  return evaluate_on_all_ranks(session, count_, *test_, batch_size_);
}

}  // namespace kolo::models
