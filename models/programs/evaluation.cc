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
#include <kolo/optimizer/hooks.h>

namespace kolo::models {

AnswerCheck::AnswerCheck(const Scope& s, Output logits, Output samples, Output labels)
    : logits_(logits), samples_(samples), labels_(labels) {
  const Scope scope = s.name_scope("accuracy");
  answers_ = argmax(scope, logits);
  const Output right = equal(scope, answers_, cast(scope, labels, DType::i64));
  right_ = reduce_sum(scope, cast(scope, right, DType::f32));
  loss_ = softmax_cross_entropy(s.name_scope("test_loss"), logits, labels);
}

AnswerCheck AnswerCheck::of_numbers(Output found, Output samples, Output labels, Output loss) {
  AnswerCheck check;
  check.loss_ = loss, check.logits_ = found, check.samples_ = samples, check.labels_ = labels;
  return check;
}

namespace {

// This rank's, while it evaluates.
class ClassCounter {
 public:
  explicit ClassCounter(const SampleKind& kind) : classes_(kind.classes) {
    for (std::int64_t i = 0; i < classes_; ++i) names_.push_back(kind.class_name(i));
    counts_.resize(static_cast<std::size_t>(classes_ * classes_));
  }

  void add(const Tensor& labels, const Tensor& answers, const Tensor& logits) {
    for (std::int64_t i = 0; i < labels.elements(); ++i) {
      const std::int64_t label = labels.data<std::int32_t>()[i];
      counts_[static_cast<std::size_t>(label * classes_ + answers.data<std::int64_t>()[i])] += 1;
      if (classes_ != 2) continue;
      const float* const row = logits.data<float>() + 2 * i;
      scores_.push_back(double{row[1]} - row[0]);
      scores_.push_back(static_cast<double>(label));
    }
  }

  // Collective.
  AnswersByClass of_all_ranks() const {
    AnswersByClass found{.confusion = Confusion(names_), .auc = {}};
    for (const std::vector<double>& theirs : kolo::detail::allgather_numbers(world_group(), counts_))
      for (std::int64_t i = 0; i < classes_ * classes_; ++i)
        found.confusion.add(i / classes_, i % classes_, std::llround(theirs[static_cast<std::size_t>(i)]));
    std::vector<Scored> scores;
    for (const std::vector<double>& theirs : kolo::detail::allgather_numbers(world_group(), scores_))
      for (std::size_t i = 0; i < theirs.size(); i += 2) scores.emplace_back(theirs[i], theirs[i + 1] == 1);
    found.auc = area_under_curve(std::move(scores));
    return found;
  }

 private:
  std::int64_t classes_;
  std::vector<std::string> names_;
  std::vector<double> counts_;  // row by row, a row for each label
  std::vector<double> scores_;  // of two classes: how far each sample leans to the second, and its label
};

}  // namespace

Evaluation evaluate_on_all_ranks(Session& session, const AnswerCheck& check,
                                 const std::shared_ptr<const SampleSet>& test, const BatchOptions& options,
                                 std::optional<AnswersByClass>* by_class) {
  std::optional<ClassCounter> counter;
  if (by_class != nullptr) counter.emplace(test->kind());
  ErrorSums errors(test->kind().classes);
  std::vector<Fetch> fetches = {check.is_of_numbers() ? check.logits() : check.right(), check.loss()};
  if (counter) fetches.insert(fetches.end(), {check.answers(), check.logits()});
  EvaluationBatches batches(test, options);
  std::int64_t correct = 0;
  double loss = 0;
  for (Batch batch; batches.next(batch);) {
    const auto found =
        session.run(fetches, {{check.samples(), batch.samples}, {check.labels(), batch.labels}});
    if (counter) counter->add(batch.labels, found[2], found[3]);
    const std::int64_t outputs = check.is_of_numbers() ? test->kind().classes : 1;
    const std::int64_t labels = batch.labels.elements() / outputs;
    for (std::int64_t i = 0; i < labels && check.is_of_numbers(); ++i)
      errors.add(found[0].data<float>() + i * outputs, batch.labels.data<float>() + i * outputs);
    if (!check.is_of_numbers()) correct += std::lround(found[0].value<float>());
    loss += found[1].value<float>() * static_cast<double>(labels);
  }
  Evaluation evaluation;
  evaluation.labels = test->size() * test->kind().labels;
  const std::vector<double> own = {static_cast<double>(correct), loss};
  for (const std::vector<double>& theirs : kolo::detail::allgather_numbers(world_group(), own)) {
    evaluation.correct += std::lround(theirs.at(0));
    evaluation.loss_sum += theirs.at(1);
  }
  if (counter) *by_class = counter->of_all_ranks();
  if (check.is_of_numbers()) {
    ErrorSums of_all(test->kind().classes);
    for (const std::vector<double>& theirs : kolo::detail::allgather_numbers(world_group(), errors.numbers()))
      of_all.add_numbers(theirs);
    evaluation.errors = of_all.errors();
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
  for (const Operation& update : update_ops(check_.loss().node->graph()))
    averages.push_back(Variable::of(*update.node->input(0).node));
  if (!averages.empty()) broadcast_variables(session, averages, 0);
  if (swap_averages_) session.run(swap_averages_);
  const Evaluation found = evaluate_on_all_ranks(session, check_, test_, batches_);
  if (swap_averages_) session.run(swap_averages_);
  return found;
}

}  // namespace kolo::models
