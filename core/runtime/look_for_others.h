// How the caller of a step waits for other ranks when it has nothing to run.
#pragma once

#include <functional>

#include <kolo/core/runtime/step_vote.h>

namespace kolo::detail {

/// What waits for other ranks alone needs no other thread as long as the caller has nothing to run: it looks
/// whether they have come, for about as long as it takes to go to sleep and be woken. True: one of them has,
/// or has_other_work() says so. False: none has, and another thread looks from now on.
bool look_for_others(const StepVotes& votes, const std::function<bool()>& has_other_work);

}  // namespace kolo::detail
