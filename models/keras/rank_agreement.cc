#include <kolo/models/keras/rank_agreement_internal.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/compare_ranks.h>
#include <kolo/core/runtime/group.h>

namespace kolo::keras::detail {

RankAgreement::RankAgreement(Trainer& trainer) {
  if (world_group().size() == 1) return;
  votes_ = trainer.votes();
  for (const auto& vote : votes_)
    drift_.emplace_back(trainer.session(), vote, kolo::detail::check_drift_steps());
}

void RankAgreement::compare_weights(std::int64_t batch) {
  for (auto& drift : drift_) drift.before(batch);
}

void RankAgreement::compare(const std::vector<std::pair<std::string, std::string>>& texts) {
  if (world_group().size() == 1) return;
  const auto difference = kolo::detail::compare_ranks(world_group(), texts);
  if (!difference) return;
  const auto other = static_cast<std::size_t>(difference->other);
  throw FailedPreconditionError("Ranks disagree on the {}: {} on rank 0 but {} on rank {}", difference->name,
                                difference->texts[0].value_or("none"),
                                difference->texts[other].value_or("none"), other);
}

void RankAgreement::wish_to_stop() {
  for (const auto& vote : votes_) vote->cast(StepFlag::stop);
}

bool RankAgreement::stops() {
  bool stop = false;
  for (std::size_t i = 0; i < votes_.size(); ++i) {
    const StepFlags outcome = votes_[i]->take_outcome();
    stop |= outcome.has(StepFlag::stop);
    drift_[i].after(outcome);
  }
  return stop;
}

bool RankAgreement::data_ended() {
  bool ended = false;
  for (const auto& vote : votes_) ended |= vote->take_outcome().has(StepFlag::end_of_data);
  return ended;
}

void RankAgreement::leave(StepFlag flag, const std::string& text) {
  for (const auto& vote : votes_) vote->leave(flag, text);
}

bool RankAgreement::any(bool own) const {
  if (is_alone()) return own;
  const auto all = world_group().allgather(own ? "yes" : "no");
  return std::find(all.begin(), all.end(), "yes") != all.end();
}

}  // namespace kolo::keras::detail
