#include <kolo/core/runtime/step_vote.h>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/registry.h>
#include <kolo/core/base/text.h>

namespace kolo {
namespace {

Registry<VoteFactory>& registry() {
  static Registry<VoteFactory> factories("the vote of");
  return factories;
}

StepFlag flag_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const OutOfRangeError&) {
    return StepFlag::end_of_data;
  } catch (...) {
    return StepFlag::failed;
  }
}

}  // namespace

RegisterVote::RegisterVote(const std::string& op, VoteFactory make, SourceLine place) {
  registry().add(op, make, place);
}

VoteFactory vote_factory(const std::string& op) {
  const VoteFactory* const found = registry().find(op);
  return found == nullptr ? nullptr : *found;
}

namespace detail {

void tell_others(const StepVotes& votes, const std::exception_ptr& error) {
  const std::string text = message_of(error);
  for (const auto& vote : votes) vote->hand_over();  // leaving one may take its time
  for (const auto& vote : votes) {
    try {
      vote->leave(flag_of(error), text);
    } catch (const std::exception& another) {
      log_error("while the other ranks were told that a step failed: {}", another.what());
    }
  }
}

VotedStep::VotedStep(Mutex& one_step, const StepVotes& votes) : votes_(votes) {
  if (votes_.empty()) return;
  lock_ = std::unique_lock(one_step);
  try {
    for (; begun_ < votes_.size(); ++begun_) votes_[begun_]->begin();
  } catch (...) {
    tell_others(votes_, std::current_exception());
    end();
    throw;
  }
}

void VotedStep::end() {
  for (; begun_ > 0; --begun_) votes_[begun_ - 1]->end();
}

}  // namespace detail
}  // namespace kolo
