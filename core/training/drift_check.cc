#include <kolo/core/training/drift_check.h>

#include <algorithm>
#include <set>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/session_state.h>
#include <kolo/core/training/rank_state_internal.h>

namespace kolo::detail {
namespace {

std::vector<Variable> trained_alike(const Graph& graph, const std::vector<std::string>& names) {
  const std::set<std::string> trained(names.begin(), names.end());
  const RankStates states(graph);
  std::vector<Variable> variables;
  for (const Variable& variable : trainable_variables(graph))
    if (trained.count(variable.name()) > 0 && states.of(variable).kind == RankState::Kind::shared)
      variables.push_back(variable);
  return variables;
}

}  // namespace

DriftCheck::DriftCheck(Session& session, std::shared_ptr<StepVote> vote, std::int64_t every)
    : session_(session), vote_(std::move(vote)), every_(every) {}

void DriftCheck::before(std::int64_t step) {
  const std::int64_t done = step - 1;
  if (!begin_) begin_ = compared_ = done;
  if (every_ != 0 && done != *begin_ && done % every_ == 0 && summed_ != done) {
    if (variables_.empty()) variables_ = trained_alike(session_.graph(), vote_->names());
    sums_ = sums(static_cast<std::uint64_t>(done));
    summed_ = done;
    is_due_ = true;
  }
  if (is_due_) vote_->cast_sum(combined(sums_));
}

WeightSums DriftCheck::sums(std::uint64_t seed) const {
  WeightSums sums;
  for (const Variable& variable : variables_) {
    const VariableStorage& storage = storage_of(session_, variable);
    std::uint64_t sum = 0;
    if (storage.initialized) {
      const Tensor value = read_variable(storage);
      sum = sum_of_bits(value.raw(), value.bytes(), seed);
    }
    sums.emplace_back(variable.name(), sum);
  }
  return sums;
}

void DriftCheck::after(const StepFlags& outcome) {
  if (!outcome.has_sum()) return;
  is_due_ = false;
  const std::int64_t last = summed_.value_or(compared_);
  if (outcome.sums_differ())
    if (const auto text =
            weights_that_differ(vote_->exchange(text_of(sums_)), vote_->ranks(), compared_ + 1, last))
      throw FailedPreconditionError("{}", *text);
  compared_ = last;
}

}  // namespace kolo::detail
