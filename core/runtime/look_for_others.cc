#include <kolo/core/runtime/look_for_others.h>

#include <chrono>
#include <thread>

namespace kolo::detail {
namespace {

using Clock = std::chrono::steady_clock;

// How often the caller looks, and from when on it offers its core to other threads between two looks.
constexpr int kLooks = 2000, kLooksAtOnce = 200;
// On a busy machine each offer may take milliseconds. Nobody asks for missing ranks meanwhile.
constexpr std::chrono::milliseconds kLongestLooks(20);

}  // namespace

bool look_for_others(const StepVotes& votes, const std::function<bool()>& has_other_work) {
  Clock::time_point until = Clock::time_point::max();
  for (int look = 0; look < kLooks && (look <= kLooksAtOnce || Clock::now() < until); ++look) {
    if (look == kLooksAtOnce) until = Clock::now() + kLongestLooks;
    bool waits = false;
    for (const auto& vote : votes) {
      const auto now = vote->advance();
      if (now == StepVote::Waits::no_more) return true;
      waits = waits || now == StepVote::Waits::still;
    }
    if (has_other_work()) return true;
    if (!waits) return false;
    if (look > kLooksAtOnce) std::this_thread::yield();
  }
  for (const auto& vote : votes) vote->hand_over();
  return false;
}

}  // namespace kolo::detail
