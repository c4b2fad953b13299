// What must hold, so that a rank's end, loss or stall reaches all who wait, in a bounded time, in whatever
// order ranks end and begin to wait:
//
// Ends. That somebody has left is one bit. It goes through the tree once, 0.1 s after the first has left,
// unless all have by then: at most one note for each edge in either direction. From then on nobody waits for
// more than 0.1 s without asking (stall_reporter.h), so it does not matter whether the rank left before or
// after the wait began, nor whether the bit came before or after it: is_late() looks at both. Ranks that have
// left go on to answer and to pass on, so the tree stays whole until all have left: a rank tells its parent
// once itself and all below it have, the root tells all, and only that ends a rank's part. Of one sender that
// is the last note, so all that it sent before has been read. Who has left is found by asking alone; the
// root's word on it names the lowest such rank, the same on all.
//
// Losses. Whoever sees one (lifelines.h) spreads it (spread.h): that goes round any ranks that are gone, the
// root included. Each loss that is seen is spread, though the first that a rank hears of is what it throws:
// the second one may be of a rank that should have passed on the first. A rank that has left hears of it as
// well, and does not wait for the others for ever (runtime.cc).
//
// Both at once. The loss counts: given_up() comes before what is known of a channel. A loss keeps the meeting
// at the end from taking place, as the lost rank or the ranks below it do not answer there. Those who wait
// for the meeting then end the job.
//
// Stalls. The root decides and spreads its decision, so that all ranks give up with the same words.
#include <kolo/collectives/progress/watch.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <sstream>
#include <utility>

#include <kolo/collectives/transport/rank_tree.h>
#include <kolo/collectives/transport/wire.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/stop_signal.h>

namespace kolo {
namespace {

// Of notes: some rank has left; the sender and all below it have; all have.
enum Kind : int { kStall, kSpread, kSomeoneLeft, kAllBelowLeft, kAllLeft };

// Ranks that leave within this time of each other need no note that somebody has left.
constexpr auto kEndsTogether = std::chrono::milliseconds(100);

std::vector<int> job_numbers(std::size_t ranks) {
  std::vector<int> numbers(ranks);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::string key_of(int channel, std::int64_t ticket) { return fmt::format("{} {}", channel, ticket); }

std::pair<int, std::int64_t> operation_of(const std::string& key) {
  std::istringstream text(key);
  std::pair<int, std::int64_t> operation;
  text >> operation.first >> operation.second;
  return operation;
}

}  // namespace

std::string text_of_loss(int rank, const std::string& host, std::int64_t last_step) {
  // mpirun, too, sends SIGTERM to those that a lost rank leaves behind, and they may hear it first.
  constexpr std::chrono::milliseconds kBeforeTheLoss{250}, kLongBefore{2500};
  const auto since = time_since_sigterm();
  const bool is_being_ended = since && *since >= kBeforeTheLoss && *since <= kLongBefore;
  return fmt::format("rank {} on {} is gone (last step {}){}", rank, host,
                     last_step < 0 ? "unknown" : std::to_string(last_step),
                     is_being_ended ? " (the job was being ended by SIGTERM)" : "");
}

Watchdog::Watchdog(Mailbox& mail, int rank, std::vector<std::string> hosts, Limits limits)
    : mail_(mail),
      rank_(rank),
      hosts_(std::move(hosts)),
      stalls_(
          rank, job_numbers(hosts_.size()), hosts_, limits,
          [this](int to, const std::string& note) { post(to, kStall, note); },
          [this](const std::string& key) { return standing_of(key); }),
      spread_(rank, size(),
              [this](int to, const std::string& note) { return try_to_post(to, kSpread, note); }),
      lost_(hosts_.size()),
      children_left_(hosts_.size()) {}

void Watchdog::set_members(int channel, const std::vector<int>& ranks) {
  RankSet members(hosts_.size());
  for (const int rank : ranks) members.set(static_cast<std::size_t>(rank));
  members_[channel] = std::move(members);
}

detail::RankSet Watchdog::members_of(int channel) const {
  const auto found = members_.find(channel);
  return found != members_.end() ? found->second : RankSet(hosts_.size()).set();
}

void Watchdog::poll(Clock::time_point now, std::span<const Waiting> waiting,
                    std::span<const Reached> finished) {
  now_ = now;
  waiting_ = waiting;
  finished_ = finished;
  while (const auto mail = mail_.take()) read(*mail);
  if (has_anyone_left_ && !have_all_left_ && now >= tell_of_leaving_at_) tell_of_leaving(-1);
  spread_.poll(now);
  std::vector<detail::StallReporter::Waiting> late;
  for (const auto& operation : waiting)
    if (!given_up_ && stalls_.is_late(now, operation.since))
      late.push_back({key_of(operation.channel, operation.ticket), std::string(operation.label),
                      members_of(operation.channel), operation.since});
  for (const auto& ruling : stalls_.poll(now, late)) carry_out(ruling);
  waiting_ = {};
  finished_ = {};
}

void Watchdog::read(const Mail& mail) {
  detail::ByteReader bytes(mail.text);
  switch (bytes.integer()) {
    case kStall: stalls_.receive(now_, mail.from, bytes.rest()); break;
    case kSpread:
      if (const auto word = spread_.receive(mail.from, bytes.rest())) spread(*word);
      break;
    case kSomeoneLeft:
      know_of_leaving();
      tell_of_leaving(mail.from);
      break;
    case kAllBelowLeft: child_has_left(mail.from); break;
    case kAllLeft: all_have_left(); break;
  }
}

void Watchdog::post(int to, int kind, std::string_view rest) {
  detail::ByteWriter note;
  note.number(kind);
  mail_.post(to, note.take().append(rest));
}

// A network that knows of a loss already may refuse.
bool Watchdog::try_to_post(int to, int kind, std::string_view rest) {
  try {
    post(to, kind, rest);
    return true;
  } catch (const UnavailableError&) {
    return false;
  }
}

// ---- Stalls.

detail::Standing Watchdog::standing_of(const std::string& key) const {
  const auto [channel, ticket] = operation_of(key);
  const auto has_come = [channel = channel, ticket = ticket](const auto& operation) {
    return operation.channel == channel && operation.ticket >= ticket;
  };
  if (std::any_of(finished_.begin(), finished_.end(), has_come) ||
      std::any_of(waiting_.begin(), waiting_.end(), has_come))
    return detail::Standing::ready;
  return has_left_ ? detail::Standing::left : detail::Standing::missing;
}

void Watchdog::carry_out(const detail::StallReporter::Ruling& ruling) {
  if (ruling.alone) give_up(ruling.ended_because);
  else if (ruling.left >= 0) spread(fmt::format("exited {} {}", ruling.left, ruling.key));
  else spread("stop " + ruling.ended_because);
}

void Watchdog::give_up(const std::string& text) {
  if (!given_up_) given_up_ = std::make_exception_ptr(DeadlineExceededError("{}", text));
}

std::exception_ptr Watchdog::verdict(int channel, std::int64_t ticket) const {
  if (given_up_) return given_up_;
  const auto exited = exited_.find(channel);
  if (exited == exited_.end() || ticket < exited->second.ticket) return nullptr;
  const int rank = exited->second.rank;
  return std::make_exception_ptr(
      UnavailableError("rank {} on {} is gone (exited)", rank, hosts_[static_cast<std::size_t>(rank)]));
}

// ---- What all are to hear: "stop <text>", "gone <rank> <step>", "exited <rank> <channel> <ticket>".

void Watchdog::lost(int rank, std::int64_t last_step) {
  if (!lost_.test(static_cast<std::size_t>(rank))) spread(fmt::format("gone {} {}", rank, last_step));
}

void Watchdog::spread(const std::string& word) {
  hear(word);
  spread_.tell(now_, word);
}

void Watchdog::hear(const std::string& word) {
  std::istringstream text(word);
  std::string kind;
  text >> kind;
  if (kind == "stop") {
    give_up(word.substr(kind.size() + 1));
    return;
  }
  int rank = 0;
  text >> rank;
  if (kind == "exited") {
    Exited exited{.ticket = 0, .rank = rank};
    int channel = 0;
    text >> channel >> exited.ticket;
    const auto [known, is_new] = exited_.try_emplace(channel, exited);
    if (!is_new && exited.ticket < known->second.ticket) known->second = exited;
    return;
  }
  std::int64_t last_step = 0;
  text >> last_step;
  lost_.set(static_cast<std::size_t>(rank));
  spread_.is_gone(rank);
  is_anyone_gone_ = true;
  if (!given_up_)
    given_up_ = std::make_exception_ptr(
        UnavailableError("{}", text_of_loss(rank, hosts_[static_cast<std::size_t>(rank)], last_step)));
}

// ---- Ends.

void Watchdog::announce_exit() {
  has_left_ = true;
  know_of_leaving();
  leave_if_all_below_have();
}

// Where all end together nobody needs to be told: then only children talk to parents, and the parents' answer
// takes the same connection.
void Watchdog::know_of_leaving() {
  if (std::exchange(has_anyone_left_, true)) return;
  stalls_.someone_has_left();
  tell_of_leaving_at_ = now_ + kEndsTogether;
}

// from: its note has come; -1: none.
void Watchdog::tell_of_leaving(int from) {
  if (std::exchange(has_told_of_leaving_, true)) return;
  for (const int neighbour : detail::neighbours_of(rank_, size())) {
    const bool knows = neighbour == from || children_left_.test(static_cast<std::size_t>(neighbour)) ||
                       (has_told_parent_ && neighbour < rank_);
    if (!knows) post(neighbour, kSomeoneLeft);
  }
}

void Watchdog::child_has_left(int child) {
  children_left_.set(static_cast<std::size_t>(child));
  know_of_leaving();
  leave_if_all_below_have();
}

void Watchdog::leave_if_all_below_have() {
  const auto children = static_cast<std::size_t>(detail::children_of(rank_, size()));
  if (!has_left_ || children_left_.count() < children || std::exchange(has_told_parent_, true)) return;
  if (rank_ == 0) all_have_left();
  else post(detail::parent_of(rank_), kAllBelowLeft);
}

void Watchdog::all_have_left() {
  have_all_left_ = true;
  for (const int child : detail::children_list(rank_, size())) post(child, kAllLeft);
}

}  // namespace kolo
