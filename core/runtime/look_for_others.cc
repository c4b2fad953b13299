#include <kolo/core/runtime/look_for_others.h>

#include <kolo/core/base/looks.h>

namespace kolo::detail {
namespace {

// Nobody asks for missing ranks meanwhile.
constexpr int kLooksAtOnce = 200, kLooksWithOffers = 1800;

}  // namespace

bool look_for_others(const StepVotes& votes, const std::function<bool()>& has_other_work) {
  Looks looks(kLooksAtOnce, kLooksWithOffers);
  do {
    bool waits = false;
    for (const auto& vote : votes) {
      const auto now = vote->advance();
      if (now == StepVote::Waits::no_more) return true;
      waits = waits || now == StepVote::Waits::still;
    }
    if (has_other_work()) return true;
    if (!waits) return false;
  } while (looks.go_on());
  for (const auto& vote : votes) vote->hand_over();
  return false;
}

}  // namespace kolo::detail
