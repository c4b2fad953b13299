#include <kolo/collectives/progress/watchdog.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

namespace kolo {
namespace {

using Seconds = Watchdog::Seconds;

constexpr Seconds kAskAgain{0.5};
// A rank whose communication thread has not answered for so long counts as missing.
constexpr Seconds kAnswerWithin{0.8};
// How long after the second limit a rank waits for rank 0's word before it gives up by itself.
constexpr Seconds kPatienceWithRankZero{3};

Seconds first_of(const Watchdog::Limits& limits) {
  const Seconds never{std::numeric_limits<double>::infinity()};
  return std::min(limits.warning.count() > 0 ? limits.warning : never,
                  limits.abort.count() > 0 ? limits.abort : never);
}

bool has_entered(int channel, std::int64_t ticket, std::span<const Waiting> waiting,
                 std::span<const Reached> finished) {
  if (std::any_of(finished.begin(), finished.end(),
                  [&](const Reached& r) { return r.channel == channel && r.ticket >= ticket; }))
    return true;
  return std::any_of(waiting.begin(), waiting.end(),
                     [&](const Waiting& w) { return w.channel == channel && w.ticket >= ticket; });
}

}  // namespace

std::string text_of_loss(int rank, const std::string& host, std::int64_t last_step) {
  return fmt::format("rank {} on {} is gone (last step {})", rank, host,
                     last_step < 0 ? "unknown" : std::to_string(last_step));
}

Watchdog::Watchdog(Mailbox& mail, int rank, std::vector<std::string> hosts, Limits limits)
    : mail_(mail),
      rank_(rank),
      hosts_(std::move(hosts)),
      limits_(limits),
      first_limit_(first_of(limits)),
      left_(hosts_.size()) {}

std::vector<int> Watchdog::members_of(int channel) const {
  const auto found = members_.find(channel);
  if (found != members_.end()) return found->second;
  std::vector<int> all(hosts_.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void Watchdog::poll(Clock::time_point now, std::span<const Waiting> waiting,
                    std::span<const Reached> finished) {
  now_ = now;
  while (const auto mail = mail_.take()) read(*mail, waiting, finished);
  for (const auto& operation : waiting) report(operation);
  for (auto it = cases_.begin(); it != cases_.end();) {
    const bool here = has_entered(it->first.channel, it->first.ticket, waiting, finished);
    it = judge(it->first, it->second, here) ? cases_.erase(it) : std::next(it);
  }
}

// The notes: "waiting <channel> <ticket> <seconds> <count> <member>… <label>" to rank 0, which may know
// nothing of the channel, "ask <channel> <ticket>" from it, "at <channel> <ticket> <0|1>" back, "stop <text>"
// from rank 0, "exit <count> <channel> <ticket>…" from whoever leaves, "gone <rank> <step>" from whoever has
// seen it.
void Watchdog::read(const Mail& mail, std::span<const Waiting> waiting, std::span<const Reached> finished) {
  std::istringstream text(mail.text);
  std::string kind;
  text >> kind;
  if (kind == "stop") {
    give_up(mail.text.substr(kind.size() + 1));
    return;
  }
  if (kind == "exit") {
    std::size_t channels = 0;
    text >> channels;
    auto& tickets = left_[mail.from].emplace();
    for (std::size_t i = 0; i < channels; ++i) {
      Reached reached;
      text >> reached.channel >> reached.ticket;
      tickets[reached.channel] = reached.ticket;
    }
    return;
  }
  if (kind == "gone") {
    int rank = 0;
    std::int64_t last_step = 0;
    text >> rank >> last_step;
    give_up_without(rank, last_step);
    return;
  }
  Key key{};
  text >> key.channel >> key.ticket;
  if (kind == "waiting") {
    double seconds = 0;
    std::size_t count = 0;
    text >> seconds >> count;
    std::vector<int> members(count);
    for (int& member : members) text >> member;
    text.get();
    std::string label;
    std::getline(text, label, '\0');
    open_case(key, label, std::move(members),
              now_ - std::chrono::duration_cast<Clock::duration>(Seconds(seconds)));
  } else if (kind == "ask") {
    mail_.post(mail.from, fmt::format("at {} {} {:d}", key.channel, key.ticket,
                                      has_entered(key.channel, key.ticket, waiting, finished)));
  } else if (kind == "at") {
    bool entered = false;
    text >> entered;
    const auto found = cases_.find(key);
    if (found == cases_.end()) return;
    Case& stalled = found->second;
    const auto place = std::find(stalled.members.begin(), stalled.members.end(), mail.from);
    if (place != stalled.members.end())
      stalled.answers[static_cast<std::size_t>(place - stalled.members.begin())] =
          entered ? Answer::ready : Answer::missing;
  }
}

void Watchdog::report(const Waiting& waiting) {
  const Seconds waited = now_ - waiting.since;
  if (waited < first_limit_) return;
  const Key key{waiting.channel, waiting.ticket};
  if (rank_ == 0) {
    if (cases_.count(key) == 0)
      open_case(key, std::string(waiting.label), members_of(key.channel), waiting.since);
    return;
  }
  if (reported_ != key) {
    const std::vector<int> members = members_of(key.channel);
    mail_.post(0, fmt::format("waiting {} {} {:.3f} {} {} {}", key.channel, key.ticket, waited.count(),
                              members.size(), fmt::join(members, " "), waiting.label));
    reported_ = key;
  }
  if (limits_.abort.count() > 0 && waited > limits_.abort + kPatienceWithRankZero && !given_up_)
    give_up(fmt::format("{}: waited {:.0f} s, and rank 0 on {} does not answer", waiting.label,
                        waited.count(), hosts_[0]));
}

void Watchdog::open_case(Key key, std::string label, std::vector<int> members, Clock::time_point since) {
  const auto found = cases_.find(key);
  if (found != cases_.end()) {
    found->second.since = std::min(found->second.since, since);
    return;
  }
  Case& stalled = cases_[key];
  stalled.label = std::move(label);
  std::sort(members.begin(), members.end());
  stalled.members = std::move(members);
  stalled.since = since;
  ask(key, stalled);
}

void Watchdog::ask(Key key, Case& stalled) {
  stalled.asked = now_;
  stalled.asked_at_limit = limits_.abort.count() > 0 && now_ - stalled.since >= limits_.abort;
  stalled.answers.assign(stalled.members.size(), Answer::none);
  for (const int member : stalled.members)
    if (member != 0) mail_.post(member, fmt::format("ask {} {}", key.channel, key.ticket));
}

bool Watchdog::judge(Key key, Case& stalled, bool here) {
  const auto own = std::find(stalled.members.begin(), stalled.members.end(), 0);
  if (own != stalled.members.end())
    stalled.answers[static_cast<std::size_t>(own - stalled.members.begin())] =
        here ? Answer::ready : Answer::missing;
  const Seconds waited = now_ - stalled.since;
  const Seconds since_asked = now_ - stalled.asked;
  const bool all_answered = std::count(stalled.answers.begin(), stalled.answers.end(), Answer::none) == 0;
  if (all_answered || since_asked >= kAnswerWithin) {
    std::vector<int> ready, missing;
    for (std::size_t i = 0; i < stalled.members.size(); ++i)
      (stalled.answers[i] == Answer::ready ? ready : missing).push_back(stalled.members[i]);
    if (missing.empty()) return true;  // all are in it: it is slow, not stalled
    const std::string text = fmt::format("{}: waited {:.1f} s; ready on [{}], missing on [{}]", stalled.label,
                                         waited.count(), fmt::join(ready, ","), fmt::join(missing, ","));
    if (limits_.warning.count() > 0 && waited >= limits_.warning && !stalled.warned) {
      log_warning("stalled: {}", text);
      stalled.warned = true;
    }
    if (stalled.asked_at_limit) {
      for (int rank = 1; rank < size(); ++rank) mail_.post(rank, "stop " + text);
      give_up(text);
      return true;
    }
  }
  const bool at_limit = limits_.abort.count() > 0 && waited >= limits_.abort && !stalled.asked_at_limit;
  if (at_limit || since_asked >= std::max(kAskAgain, all_answered ? kAskAgain : kAnswerWithin))
    ask(key, stalled);
  return false;
}

void Watchdog::give_up(const std::string& text) {
  if (given_up_) return;
  given_up_ = std::make_exception_ptr(
      DeadlineExceededError("{}; the limit KOLO_STALL_ABORT_S is {} s", text, limits_.abort.count()));
}

bool Watchdog::give_up_without(int rank, std::int64_t last_step) {
  if (is_anyone_gone_.exchange(true) || given_up_) return false;
  given_up_ = std::make_exception_ptr(UnavailableError("{}", text_of_loss(rank, hosts_[rank], last_step)));
  return true;
}

void Watchdog::lost(int rank, std::int64_t last_step) {
  if (!give_up_without(rank, last_step)) return;
  for (int other = 0; other < size(); ++other)
    if (other != rank_ && other != rank) mail_.post(other, fmt::format("gone {} {}", rank, last_step));
}

std::exception_ptr Watchdog::verdict(int channel, std::int64_t ticket) const {
  if (given_up_) return given_up_;
  for (const int rank : members_of(channel)) {
    if (!left_[rank]) continue;
    const auto finished = left_[rank]->find(channel);
    if (finished != left_[rank]->end() && finished->second >= ticket) continue;
    return std::make_exception_ptr(UnavailableError("rank {} on {} is gone (exited)", rank, hosts_[rank]));
  }
  return nullptr;
}

void Watchdog::announce_exit(std::span<const Reached> finished) {
  std::string text = fmt::format("exit {}", finished.size());
  for (const Reached& reached : finished) text += fmt::format(" {} {}", reached.channel, reached.ticket);
  for (int rank = 0; rank < size(); ++rank)
    if (rank != rank_) mail_.post(rank, text);
}

}  // namespace kolo
