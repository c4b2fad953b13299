#include <kolo/collectives/progress/watch.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>

#include <kolo/collectives/transport/wire.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

namespace kolo {
namespace {

using Seconds = StallLimits::Seconds;

constexpr Seconds kAskAgain{0.5};
// A rank whose communication thread has not answered for so long counts as missing.
constexpr Seconds kAnswerWithin{0.8};
// How long after the second limit a rank waits for the word of the one that asks before it gives up by
// itself.
constexpr Seconds kPatience{3};

std::string with_limit(const std::string& text, const StallLimits& limits) {
  return fmt::format("{}; the limit KOLO_STALL_ABORT_S is {} s", text, limits.abort.count());
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

Seconds StallLimits::first() const {
  const Seconds never{std::numeric_limits<double>::infinity()};
  return std::min(warning.count() > 0 ? warning : never, abort.count() > 0 ? abort : never);
}

namespace detail {

bool StallCase::all_answered() const {
  return std::count(answers_.begin(), answers_.end(), Answer::none) == 0;
}

void StallCase::asked(Clock::time_point now, const StallLimits& limits) {
  asked_ = now;
  asked_at_limit_ = limits.abort.count() > 0 && now - since_ >= limits.abort;
  answers_.assign(members_.size(), Answer::none);
}

StallCase::Finding StallCase::judge(Clock::time_point now, const StallLimits& limits) {
  if (!all_answered() && now - asked_ < kAnswerWithin) return {};
  const Seconds waited = now - since_;
  std::vector<int> ready, missing;
  for (std::size_t i = 0; i < members_.size(); ++i)
    (answers_[i] == Answer::ready ? ready : missing).push_back(members_[i]);
  if (missing.empty()) return {.all_ready = true, .ended_because = ""};
  const std::string text = fmt::format("{}: waited {:.1f} s; ready on [{}], missing on [{}]", label_,
                                       waited.count(), fmt::join(ready, ","), fmt::join(missing, ","));
  if (limits.warning.count() > 0 && waited >= limits.warning && !warned_) {
    log_warning("stalled: {}", text);
    warned_ = true;
  }
  return {.all_ready = false, .ended_because = asked_at_limit_ ? text : ""};
}

bool StallCase::is_to_ask_again(Clock::time_point now, const StallLimits& limits) const {
  if (limits.abort.count() > 0 && now - since_ >= limits.abort && !asked_at_limit_) return true;
  return now - asked_ >= (all_answered() ? kAskAgain : std::max(kAskAgain, kAnswerWithin));
}

}  // namespace detail

std::string text_of_loss(int rank, const std::string& host, std::int64_t last_step) {
  return fmt::format("rank {} on {} is gone (last step {})", rank, host,
                     last_step < 0 ? "unknown" : std::to_string(last_step));
}

Watchdog::Watchdog(Mailbox& mail, int rank, std::vector<std::string> hosts, Limits limits)
    : mail_(mail), rank_(rank), hosts_(std::move(hosts)), limits_(limits), left_(hosts_.size()) {}

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
    const auto& members = found->second.members();
    const auto place = std::find(members.begin(), members.end(), mail.from);
    if (place != members.end())
      found->second.answered(static_cast<std::size_t>(place - members.begin()), entered);
  }
}

void Watchdog::report(const Waiting& waiting) {
  const Seconds waited = now_ - waiting.since;
  if (waited < limits_.first()) return;
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
  if (limits_.abort.count() > 0 && waited > limits_.abort + kPatience && !given_up_)
    give_up(fmt::format("{}: waited {:.0f} s, and rank 0 on {} does not answer", waiting.label,
                        waited.count(), hosts_[0]));
}

void Watchdog::open_case(Key key, std::string label, std::vector<int> members, Clock::time_point since) {
  std::sort(members.begin(), members.end());
  const auto [stalled, is_new] = cases_.try_emplace(key, std::move(label), std::move(members), since);
  if (is_new) ask(key, stalled->second);
  else stalled->second.waited_since(since);
}

void Watchdog::ask(Key key, detail::StallCase& stalled) {
  stalled.asked(now_, limits_);
  for (const int member : stalled.members())
    if (member != 0) mail_.post(member, fmt::format("ask {} {}", key.channel, key.ticket));
}

bool Watchdog::judge(Key key, detail::StallCase& stalled, bool here) {
  // Ascending: rank 0 is the first, if it takes part.
  if (!stalled.members().empty() && stalled.members()[0] == 0) stalled.answered(0, here);
  const auto finding = stalled.judge(now_, limits_);
  if (finding.all_ready) return true;
  if (!finding.ended_because.empty()) {
    for (int rank = 1; rank < size(); ++rank) mail_.post(rank, "stop " + finding.ended_because);
    give_up(finding.ended_because);
    return true;
  }
  if (stalled.is_to_ask_again(now_, limits_)) ask(key, stalled);
  return false;
}

void Watchdog::give_up(const std::string& text) {
  if (given_up_) return;
  given_up_ = std::make_exception_ptr(DeadlineExceededError("{}", with_limit(text, limits_)));
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

namespace kolo::detail {
namespace {

enum Note : std::int64_t { kStalled, kAsk, kReady, kMissing };

std::string note(Note kind, const std::string& name, const std::string& label = "", double seconds = 0) {
  ByteWriter to;
  to.number(kind);
  to.text(name);
  to.text(label);
  to.real(seconds);
  return to.take();
}

}  // namespace

StallReporter::StallReporter(int rank, std::vector<int> members, std::string root_host, StallLimits limits,
                             Send send, IsReady is_ready)
    : rank_(rank),
      members_(std::move(members)),
      root_host_(std::move(root_host)),
      limits_(limits),
      send_(std::move(send)),
      is_ready_(std::move(is_ready)) {}

bool StallReporter::is_late(Clock::time_point now, Clock::time_point since) const {
  return now - since >= limits_.first();
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
    if (limits_.abort.count() > 0 && waited > limits_.abort + kPatience)
      return fmt::format("{}: waited {:.0f} s, and rank {} on {} does not answer", operation.label,
                         waited.count(), members_[0], root_host_);
  }
  if (waiting.empty()) reported_.clear();
  for (auto& [name, stalled] : cases_)
    if (auto text = judge(name, stalled)) return text;
  return std::nullopt;
}

void StallReporter::open_case(const std::string& name, const std::string& label, Clock::time_point since) {
  const auto [stalled, is_new] = cases_.try_emplace(name, label, members_, since);
  if (is_new) ask(name, stalled->second);
  else stalled->second.waited_since(since);
}

void StallReporter::ask(const std::string& name, StallCase& stalled) {
  stalled.asked(now_, limits_);
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
    stalled->second.answered(static_cast<std::size_t>(from), kind == kReady);
  }
}

std::optional<std::string> StallReporter::judge(const std::string& name, StallCase& stalled) {
  stalled.answered(0, is_ready_(name));
  const auto finding = stalled.judge(now_, limits_);
  if (!finding.ended_because.empty()) return with_limit(finding.ended_because, limits_);
  if (stalled.is_to_ask_again(now_, limits_)) ask(name, stalled);
  return std::nullopt;
}

}  // namespace kolo::detail
