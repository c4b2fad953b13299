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
#include <kolo/models/programs/skip_hint.h>
#include <kolo/optimizer/hooks.h>

namespace kolo::models {

AnswerCheck::AnswerCheck(const Scope& s, LabelKind kind, Output logits, Output samples, Output labels,
                         Output loss)
    : kind_(kind), loss_(loss), logits_(logits), samples_(samples), labels_(labels) {
  if (kind != LabelKind::one_class) return;
  const Scope scope = s.name_scope("accuracy");
  answers_ = argmax(scope, logits);
  const Output right = equal(scope, answers_, cast(scope, labels, DType::i64));
  right_ = reduce_sum(scope, cast(scope, right, DType::f32));
}

namespace {

std::vector<std::string> names_of(const SampleKind& kind) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < kind.classes; ++i) names.push_back(kind.class_name(i));
  return names;
}

// all: nothing yet. Collective.
template <typename Counts>
Counts joined_over_ranks(const Counts& own, Counts all) {
  for (const std::vector<double>& theirs : kolo::detail::allgather_numbers(world_group(), own.numbers()))
    all.add_numbers(theirs);
  return all;
}

// This rank's, while it evaluates.
class ClassCounter {
 public:
  explicit ClassCounter(const SampleKind& kind) : classes_(kind.classes), names_(names_of(kind)) {
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
  const std::vector<std::string> names = names_of(test->kind());
  ErrorSums errors(names);
  LabelScores scores(names);
  const bool of_classes = check.kind() == LabelKind::one_class;
  std::vector<Fetch> fetches = {of_classes ? check.right() : check.logits(), check.loss()};
  if (counter) fetches.insert(fetches.end(), {check.answers(), check.logits()});
  EvaluationBatches batches(test, options);
  std::int64_t correct = 0;
  double loss = 0;
  for (Batch batch; with_skip_hint(test->kind(), [&] { return batches.next(batch); });) {
    const auto found =
        session.run(fetches, {{check.samples(), batch.samples}, {check.labels(), batch.labels}});
    if (counter) counter->add(batch.labels, found[2], found[3]);
    const std::int64_t outputs = of_classes ? 1 : test->kind().classes;
    const std::int64_t labels = batch.labels.elements() / outputs;
    for (std::int64_t i = 0; i < labels && !of_classes; ++i) {
      const float* const logits = found[0].data<float>() + i * outputs;
      const float* const right = batch.labels.data<float>() + i * outputs;
      if (check.kind() == LabelKind::numbers) errors.add(logits, right);
      else scores.add(logits, right);
    }
    if (of_classes) correct += std::lround(found[0].value<float>());
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
  if (check.kind() == LabelKind::numbers)
    evaluation.errors = joined_over_ranks(errors, ErrorSums(names)).errors();
  if (check.kind() == LabelKind::several) {
    evaluation.scores = joined_over_ranks(scores, LabelScores(names));
    evaluation.correct = evaluation.scores->all_right();
  }
  return evaluation;
}

// Who waited for a training to its end must not think that a damaged picture has cost it.
void EvaluationHook::end(Session& session) {
  if (skip_) return;
  const auto text = [&](const Error& error) {
    if (saved_in_.empty() || !test_->kind().decoded) return std::string(error.what());
    return fmt::format(
        "{}; the training itself is saved in {}, and --evaluate with --skip-damaged, or without that file, "
        "gives its accuracy",
        error.what(), saved_in_);
  };
  try {
    result_ = evaluate(session);
  } catch (const DataLossError& error) {
    throw DataLossError("{}", text(error));
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError("{}", text(error));
  }
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
