#include <kolo/core/training/rendezvous.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/stop_signal.h>
#include <kolo/core/runtime/compare_ranks.h>
#include <kolo/core/training/common_start.h>

namespace kolo::detail {
namespace {

// True if every rank of `inner` is one of `outer`.
bool covers(const std::vector<int>& outer, const std::vector<int>& inner) {
  if (outer.empty() || inner.empty()) return outer.empty();
  return std::includes(outer.begin(), outer.end(), inner.begin(), inner.end());
}

}  // namespace

Rendezvous::Rendezvous(Session& session, Group& group, StepVotes votes, std::int64_t check_drift)
    : session_(session), group_(group) {
  if (group.size() == 1) return;
  // Nodes of one schedule share its vote.
  for (auto& vote : votes)
    if (std::none_of(members_.begin(), members_.end(), [&](const Member& m) { return m.vote == vote; })) {
      auto ranks = vote->ranks();
      members_.push_back({vote, std::move(ranks), DriftCheck(session, vote, check_drift), {}, {}});
    }
}

std::map<std::vector<int>, int> Rendezvous::count_by_ranks() const {
  std::map<std::vector<int>, int> count;
  for (const Member& member : members_) ++count[member.ranks];
  return count;
}

void Rendezvous::compare() {
  const auto compare_all = [&] {
    for (const Member& member : members_) member.vote->compare();
  };
  // What some ranks alone find out, all hear of.
  if (compare_number_of_schedules(group_, count_by_ranks())) share_failure(group_, compare_all);
  else compare_all();
}

void Rendezvous::agree_on_saving(RankLayout layout, bool some_hook_saves) {
  layout_ = std::move(layout);
  if (!layout_.empty()) saves_at_ends_ = group_.broadcast(some_hook_saves ? "saves" : "", 0) == "saves";
}

void Rendezvous::set_step(std::int64_t step) {
  step_ = step;
  for (const Member& member : members_) member.vote->set_step(step);
}

void Rendezvous::send_wishes(const RunContext& context) {
  stop_asked_ |= stop_signal_received() || context.stop_requested() || context.last_step_announced();
  for (Member& member : members_) {
    if (step_) member.drift.before(*step_);
    if (stop_asked_) member.vote->cast(StepFlag::stop);
    if (context.save_announced() && !layout_.empty() && member.ranks.empty())
      member.vote->cast(StepFlag::save);
  }
}

void Rendezvous::take_outcomes() {
  for (Member& member : members_) {
    const StepFlags outcome = member.vote->take_outcome();
    if (outcome.has(StepFlag::save) && phase_ == Phase::training) phase_ = Phase::saving;
    member.last = outcome;
    member.told.add(outcome);
  }
}

std::unique_ptr<const GatheredState> Rendezvous::gather_if_agreed() {
  take_outcomes();
  for (Member& member : members_) member.drift.after(std::exchange(member.last, {}));
  if (phase_ != Phase::saving) return nullptr;
  phase_ = Phase::training;
  return std::make_unique<const GatheredState>(session_, group_, layout_);
}

std::unique_ptr<const GatheredState> Rendezvous::gather_at_ends() {
  if (!saves_at_ends_) return nullptr;
  return std::make_unique<const GatheredState>(session_, group_, layout_);
}

void Rendezvous::decide(const RunContext& context) {
  hook_asked_ |= context.stop_requested();
  const bool asked = stop_signal_received() || context.stop_requested();
  if (is_alone() ? asked : any_has_ended()) phase_ = Phase::stopping;
  stop_asked_ |= context.stop_requested();  // goes with the next step, if there is one
}

bool Rendezvous::should_stop() {
  if (is_alone() && phase_ == Phase::training && stop_signal_received()) phase_ = Phase::stopping;
  return is_over();
}

bool Rendezvous::any_has_ended() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.has_ended(); });
}

// From another schedule, if not from this one.
bool Rendezvous::all_know(const Member& member) {
  take_outcomes();
  return std::any_of(members_.begin(), members_.end(), [&](const Member& other) {
    return other.has_ended() && covers(other.ranks, member.ranks);
  });
}

bool Rendezvous::end_of_data(const std::string& text) {
  take_outcomes();
  const bool all_end = std::any_of(members_.begin(), members_.end(), [](const Member& member) {
    return member.told.has(StepFlag::end_of_data);
  });
  if (phase_ == Phase::saving && !all_end) {
    fail(text);
    return false;
  }
  phase_ = Phase::ended;
  try {
    tell_end_of_data();
  } catch (...) {
    phase_ = Phase::failed;
    throw;
  }
  return true;
}

// A graph with several schedules runs them in the order in which it holds them: the others come to the first
// one. Those of all ranks first: who hears of the end there need not hear of it twice.
void Rendezvous::tell_end_of_data() {
  std::vector<const Member*> told;
  for (const bool of_all : {true, false})
    for (const Member& member : members_) {
      if (member.ranks.empty() != of_all) continue;
      const bool known = all_know(member) || std::any_of(told.begin(), told.end(), [&](const Member* other) {
                           return covers(other->ranks, member.ranks);
                         });
      if (known) continue;
      member.vote->leave(StepFlag::end_of_data, "");
      told.push_back(&member);
    }
}

void Rendezvous::fail(const std::string& text) {
  take_outcomes();
  const bool others_save = std::exchange(phase_, Phase::failed) == Phase::saving;
  if (others_save) GatheredState::refuse(text, group_);
  failure_ = text;
  for (const Member& member : members_)
    if (!all_know(member)) member.vote->leave(StepFlag::failed, text);  // else the others have left
  // Behind that, for an end may have been agreed upon in the very step that told of the failure.
  take_outcomes();
  for (const Member& member : members_)
    if (member.ranks.empty() && member.has_ended()) phase_ = Phase::failed_unseen;
}

bool Rendezvous::leave() {
  if (!has_failed()) {
    if (phase_ == Phase::training) phase_ = Phase::ended;
    tell_end_of_data();
    return true;
  }
  if (phase_ == Phase::failed_unseen && saves_at_ends_) GatheredState::refuse(failure_, group_);
  return false;
}

}  // namespace kolo::detail
