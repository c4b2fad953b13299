#include <kolo/collectives/engine/stall_reporter.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <kolo/collectives/engine/wire.h>
#include <kolo/core/base/log.h>

namespace kolo::detail {
namespace {

using Seconds = Watchdog::Seconds;

constexpr Seconds kAskAgain{0.5};
// A rank whose communication thread has not answered for so long counts as missing.
constexpr Seconds kAnswerWithin{0.8};
// How long after the second limit a rank waits for the root's word before it gives up by itself.
constexpr Seconds kPatienceWithRoot{3};

enum Note : std::int64_t { kStalled, kAsk, kReady, kMissing };

Seconds first_of(const Watchdog::Limits& limits) {
  const Seconds never{std::numeric_limits<double>::infinity()};
  return std::min(limits.warning.count() > 0 ? limits.warning : never,
                  limits.abort.count() > 0 ? limits.abort : never);
}

std::string note(Note kind, const std::string& name, const std::string& label = "", double seconds = 0) {
  ByteWriter to;
  to.number(kind);
  to.text(name);
  to.text(label);
  to.real(seconds);
  return to.take();
}

}  // namespace

StallReporter::StallReporter(int rank, std::vector<int> members, std::string root_host,
                             Watchdog::Limits limits, Send send, IsReady is_ready)
    : rank_(rank),
      members_(std::move(members)),
      root_host_(std::move(root_host)),
      limits_(limits),
      send_(std::move(send)),
      is_ready_(std::move(is_ready)) {}

bool StallReporter::is_late(Clock::time_point now, Clock::time_point since) const {
  return now - since >= first_of(limits_);
}

std::optional<std::string> StallReporter::poll(Clock::time_point now, const std::vector<Waiting>& waiting) {
  now_ = now;
  for (const auto& operation : waiting) {
    const Seconds waited = now - operation.since;
    if (rank_ == 0) {
      open_case(operation.name, operation.label, operation.since);
      continue;
    }
    const auto [reported, is_new] = reported_.try_emplace(operation.name);
    if (is_new || reported->second != operation.since) {
      reported->second = operation.since;
      send_(0, note(kStalled, operation.name, operation.label, waited.count()));
    }
    if (limits_.abort.count() > 0 && waited > limits_.abort + kPatienceWithRoot)
      return fmt::format("{}: waited {:.0f} s, and rank {} on {} does not answer", operation.label,
                         waited.count(), members_[0], root_host_);
  }
  if (waiting.empty()) reported_.clear();
  for (auto& [name, stalled] : cases_)
    if (auto text = judge(name, stalled)) return text;
  return std::nullopt;
}

void StallReporter::open_case(const std::string& name, const std::string& label, Clock::time_point since) {
  const auto [stalled, is_new] = cases_.try_emplace(name);
  if (!is_new) {
    stalled->second.since = std::min(stalled->second.since, since);
    return;
  }
  stalled->second.label = label;
  stalled->second.since = since;
  ask(name, stalled->second);
}

void StallReporter::ask(const std::string& name, Case& stalled) {
  stalled.asked = now_;
  stalled.asked_at_limit = limits_.abort.count() > 0 && now_ - stalled.since >= limits_.abort;
  stalled.answers.assign(members_.size(), Answer::none);
  for (std::size_t rank = 1; rank < members_.size(); ++rank) send_(static_cast<int>(rank), note(kAsk, name));
}

void StallReporter::receive(Clock::time_point now, int from, std::string_view message) {
  now_ = now;
  ByteReader bytes(message);
  const auto kind = bytes.number();
  const std::string name = bytes.text(), label = bytes.text();
  const Seconds waited(bytes.real());
  if (kind == kStalled) {
    open_case(name, label, now_ - std::chrono::duration_cast<Clock::duration>(waited));
  } else if (kind == kAsk) {
    send_(0, note(is_ready_(name) ? kReady : kMissing, name));
  } else if (const auto stalled = cases_.find(name); stalled != cases_.end()) {
    stalled->second.answers[from] = kind == kReady ? Answer::ready : Answer::missing;
  }
}

std::optional<std::string> StallReporter::judge(const std::string& name, Case& stalled) {
  stalled.answers[0] = is_ready_(name) ? Answer::ready : Answer::missing;
  const Seconds waited = now_ - stalled.since, since_asked = now_ - stalled.asked;
  const bool all_answered = std::count(stalled.answers.begin(), stalled.answers.end(), Answer::none) == 0;
  if (all_answered || since_asked >= kAnswerWithin) {
    std::vector<int> ready, missing;
    for (std::size_t rank = 0; rank < members_.size(); ++rank)
      (stalled.answers[rank] == Answer::ready ? ready : missing).push_back(members_[rank]);
    const std::string text = fmt::format("{}: waited {:.1f} s; ready on [{}], missing on [{}]", stalled.label,
                                         waited.count(), fmt::join(ready, ","), fmt::join(missing, ","));
    if (!missing.empty() && limits_.warning.count() > 0 && waited >= limits_.warning && !stalled.warned) {
      log_warning("stalled: {}", text);
      stalled.warned = true;
    }
    if (!missing.empty() && stalled.asked_at_limit)
      return fmt::format("{}; the limit KOLO_STALL_ABORT_S is {} s", text, limits_.abort.count());
  }
  const bool at_limit = limits_.abort.count() > 0 && waited >= limits_.abort && !stalled.asked_at_limit;
  if (at_limit || since_asked >= std::max(kAskAgain, all_answered ? kAskAgain : kAnswerWithin))
    ask(name, stalled);
  return std::nullopt;
}

}  // namespace kolo::detail
