// What must hold, so that nobody waits for ever and nobody is called missing who is not:
//
// 1. A rank that is late reports until it is asked. The first report goes to its parent, and each
//    further one, a second later, to the next rank above. A rank that does not pass reports on delays them,
//    no more.
// 2. Questions are numbered by the root. A rank adds answers of the newest number alone, so an old "missing"
//    never meets a new question. Each question replaces the one before of the same key.
// 3. A rank answers its askers when its subtree has, or when its time is over. That time grows with the
//    height of the subtree: a rank's answer can still be on its way when its child's time is over, not the
//    reverse. What comes later is passed on as it comes.
// 4. Only the root decides that a rank is silent. It then asks those below the silent rank directly, who
//    answer it directly. So a rank that is dead or stopped hides nobody.
// 5. A rank evaluates how far it is when it answers, on its communication thread, which no program holds up.
// 6. A rank that has left answers until all have left (watch.cc).
// 7. A rank that waits longer than the second limit, and is not asked any more, gives up by itself.
#include <kolo/collectives/progress/stall_reporter.h>

#include <fmt/format.h>

#include <limits>

#include <kolo/collectives/transport/rank_tree.h>
#include <kolo/core/base/log.h>

namespace kolo {
namespace {

using Seconds = StallLimits::Seconds;
using Clock = std::chrono::steady_clock;

constexpr Seconds kAskAgain{0.5};
// A leaf whose communication thread has not answered for so long counts as missing; each level of ranks has
// more time than the one below.
constexpr Seconds kAnswerWithin{0.8}, kMoreForEachLevel{0.2};
// Reports of one operation, to the next rank above, until this rank is asked. Once it was, the root knows,
// and has found that the operation is slow if it asks no more.
constexpr Seconds kReportAgain{1}, kReportAgainOnceAsked{5};
// Where some rank has left.
constexpr Seconds kPatienceOnceSomeoneLeft{0.1};
// How long after the second limit a rank waits for the word of the root before it gives up by itself.
constexpr Seconds kPatience{3};
// Of what nobody has asked or waited for since.
constexpr Seconds kForgetAfter{30};

enum Note : std::int64_t { kStalled, kAsk, kAnswer };

Clock::duration ticks(Seconds seconds) { return std::chrono::duration_cast<Clock::duration>(seconds); }

std::string with_limit(const std::string& text, const StallLimits& limits) {
  return fmt::format("{}; the limit KOLO_STALL_ABORT_S is {} s", text, limits.abort.count());
}

// How long a rank with so many levels of ranks below it waits for their answers.
Clock::duration time_to_answer(int height) {
  return ticks(kAnswerWithin + kMoreForEachLevel * std::max(height - 1, 0));
}

// Ranks at or below `rank` lie in one range on each level.
bool has_any_below(const detail::RankSet& members, int rank) {
  for (auto first = static_cast<std::size_t>(rank), last = first; first < members.size();
       first = first * detail::kTreeArity + 1, last = last * detail::kTreeArity + detail::kTreeArity) {
    const auto found = first == 0 ? members.find_first() : members.find_next(first - 1);
    if (found != detail::RankSet::npos && found <= last) return true;
  }
  return false;
}

std::string note_of(Note kind, const std::string& key, const std::function<void(detail::ByteWriter&)>& rest) {
  detail::ByteWriter to;
  to.number(kind);
  to.text(key);
  rest(to);
  return to.take();
}

}  // namespace

Seconds StallLimits::first() const {
  const Seconds never{std::numeric_limits<double>::infinity()};
  return std::min(warning.count() > 0 ? warning : never, abort.count() > 0 ? abort : never);
}

namespace detail {

// ---- What has been answered.

Standings::Standings(int ranks)
    : ready(static_cast<std::size_t>(ranks)), missing(ready), left(ready), others(ready) {}

void Standings::add(const Standings& more) {
  ready |= more.ready;
  missing |= more.missing;
  left |= more.left;
  others |= more.others;
}

void Standings::add(int rank, Standing standing) {
  RankSet& to = standing == Standing::ready ? ready : standing == Standing::left ? left : missing;
  to.set(static_cast<std::size_t>(rank));
}

// ---- What the root knows of one operation.

StallCase::StallCase(std::string label, RankSet members, Clock::time_point since, const StallLimits& limits)
    : label_(std::move(label)),
      members_(std::move(members)),
      expected_(members_),
      since_(since),
      limits_(limits),
      heard_(static_cast<int>(members_.size())),
      silent_(members_.size()) {
  for_each_rank(members_, [&](int rank) {
    for (; rank != 0; rank = parent_of(rank)) expected_.set(static_cast<std::size_t>(rank));
  });
  expected_.set(0);
}

void StallCase::asked(Clock::time_point now, std::int64_t round) {
  asked_ = now;
  round_ = round;
  deadline_ = now + time_to_answer(height_of(0, static_cast<int>(members_.size())));
  asked_at_limit_ = limits_.abort.count() > 0 && waited(now) >= limits_.abort;
  heard_ = Standings(static_cast<int>(members_.size()));
}

void StallCase::answered(std::int64_t round, const Standings& standings) {
  if (round != round_) return;
  heard_.add(standings);
  silent_ -= standings.all();
}

// A rank below a silent one is silent only if it was asked directly.
std::vector<int> StallCase::newly_silent(Clock::time_point now) {
  std::vector<int> found;
  if (now < deadline_) return found;
  const RankSet missing = unheard(), known = silent_;
  for_each_rank(missing, [&](int rank) {
    const auto above = static_cast<std::size_t>(parent_of(rank));  // the root has heard itself
    if (known.test(static_cast<std::size_t>(rank)) || (missing.test(above) && !known.test(above))) return;
    found.push_back(rank);
    silent_.set(static_cast<std::size_t>(rank));
    const int height = height_of(rank, static_cast<int>(members_.size()));
    if (height > 0) deadline_ = std::max(deadline_, now + time_to_answer(height));
  });
  return found;
}

std::vector<int> StallCase::silent() const {
  std::vector<int> ranks;
  for_each_rank(silent_, [&](int rank) { ranks.push_back(rank); });
  return ranks;
}

std::optional<Standings> StallCase::result(Clock::time_point now) const {
  if (unheard().any() && now < deadline_) return std::nullopt;
  Standings found = heard_;
  found.missing |= unheard() & members_;
  found.missing -= found.ready;  // said by a rank that has come since
  return found;
}

bool StallCase::is_to_ask_again(Clock::time_point now) const {
  if (unheard().any() && now < deadline_) return false;
  const bool is_limit_over = limits_.abort.count() > 0 && waited(now) >= limits_.abort;
  return (is_limit_over && !asked_at_limit_) || now - asked_ >= kAskAgain;
}

bool StallCase::is_to_warn(Clock::time_point now) {
  if (limits_.warning.count() <= 0 || waited(now) < limits_.warning) return false;
  return !std::exchange(warned_, true);
}

std::string StallCase::describe(Clock::time_point now, const Standings& found, std::span<const int> numbers,
                                std::span<const std::string> hosts) const {
  const auto listed = [&](const RankSet& set) {
    std::vector<int> ranks;
    for_each_rank(set, [&](int place) { ranks.push_back(numbers[static_cast<std::size_t>(place)]); });
    return ranks;
  };
  const auto all = static_cast<int>(members_.count());
  return fmt::format("{}: waited {:.1f} s; ready on [{}], missing on [{}]", label_, waited(now).count(),
                     text_of_ranks(listed(found.ready), all),
                     text_of_ranks(listed(found.missing | found.left), all, hosts));
}

// ---- One rank's part.

StallReporter::StallReporter(int rank, std::vector<int> numbers, std::span<const std::string> hosts,
                             StallLimits limits, Send send, StandingOf standing_of)
    : rank_(rank),
      numbers_(std::move(numbers)),
      hosts_(hosts),
      limits_(limits),
      send_(std::move(send)),
      standing_of_(std::move(standing_of)) {}

void StallReporter::someone_has_left() {
  if (std::exchange(someone_has_left_, true)) return;
  for (auto& [key, report] : reports_) report.next = {};
}

bool StallReporter::is_late(Clock::time_point now, Clock::time_point since) const {
  const Seconds first = limits_.first();
  return now - since >= (someone_has_left_ ? std::min(first, kPatienceOnceSomeoneLeft) : first);
}

std::vector<StallReporter::Ruling> StallReporter::poll(Clock::time_point now,
                                                       const std::vector<Waiting>& waiting) {
  now_ = now;
  std::vector<Ruling> rulings;
  for (const auto& operation : waiting) {
    if (rank_ == 0) {
      open_case(operation);
      continue;
    }
    report(operation, true);
    if (auto ruling = give_up_alone(operation)) rulings.push_back(std::move(*ruling));
  }
  for (auto& [key, question] : questions_)
    if (!question.answered && now_ >= question.deadline) answer(key, question);
  for (auto it = cases_.begin(); it != cases_.end();) {
    auto ruling = judge(it->first, it->second);
    const bool is_over = ruling.has_value();
    if (is_over && (ruling->left >= 0 || !ruling->ended_because.empty()))
      rulings.push_back(std::move(*ruling));
    else if (is_over) reports_[it->first].next = now_ + ticks(kReportAgainOnceAsked);
    it = is_over ? cases_.erase(it) : std::next(it);
  }
  forget_old();
  return rulings;
}

// A root that asks decides as well.
std::optional<StallReporter::Ruling> StallReporter::give_up_alone(const Waiting& waiting) const {
  const Seconds waited = now_ - waiting.since;
  const Seconds patience = kPatience + 2 * kMoreForEachLevel * height_of(0, size());
  if (waiting.is_patient || limits_.abort.count() <= 0 || waited <= limits_.abort + patience)
    return std::nullopt;
  const auto& asked = reports_.at(waiting.key).asked;
  if (asked && now_ - *asked <= kReportAgainOnceAsked + patience) return std::nullopt;
  return Ruling{.key = waiting.key,
                .ended_because = with_limit(
                    fmt::format("{}: waited {:.0f} s, and rank {} on {} does not answer", waiting.label,
                                waited.count(), numbers_[0], hosts_[static_cast<std::size_t>(numbers_[0])]),
                    limits_),
                .alone = true};
}

void StallReporter::report(const Waiting& waiting, bool is_own) {
  Report& report = reports_[waiting.key];
  if (is_own && report.since && *report.since != waiting.since) report = {};  // another call of this name
  if (is_own) report.since = waiting.since;
  if (now_ < report.next) return;
  ++report.attempts;
  report.next = now_ + ticks(kReportAgain);
  int to = rank_;
  for (int level = 0; level < report.attempts && to != 0; ++level) to = parent_of(to);
  send_(to, note_of(kStalled, waiting.key, [&](ByteWriter& rest) {
          rest.text(waiting.label);
          write_ranks(rest, waiting.members);
          rest.real(Seconds(now_ - waiting.since).count());
          rest.number(waiting.is_patient ? 1 : 0);
        }));
}

void StallReporter::receive(Clock::time_point now, int from, std::string_view note) {
  now_ = now;
  ByteReader bytes(note);
  const auto kind = bytes.number();
  const std::string key = bytes.text();
  if (kind == kStalled) {
    Waiting waiting{.key = key, .label = bytes.text(), .members = read_ranks(bytes, size()), .since = {}};
    waiting.since = now_ - ticks(Seconds(bytes.real()));
    waiting.is_patient = bytes.number() != 0;
    if (rank_ == 0) open_case(waiting);
    else report(waiting, false);
  } else if (kind == kAsk) {
    const auto round = bytes.number();
    asked(from, key, round, read_ranks(bytes, size()));
  } else {
    const auto round = bytes.number();
    Standings standings(size());
    for (RankSet* set : {&standings.ready, &standings.missing, &standings.left, &standings.others})
      *set = read_ranks(bytes, size());
    answered(from, key, round, standings);
  }
}

// ---- Questions, down the tree.

void StallReporter::open_case(const Waiting& waiting) {
  const auto slow = reports_.find(waiting.key);
  if (slow != reports_.end() && now_ < slow->second.next) return;
  const auto [stalled, is_new] =
      cases_.try_emplace(waiting.key, waiting.label, waiting.members, waiting.since,
                         waiting.is_patient ? StallLimits{{}, {}} : limits_);
  if (is_new) ask_all(waiting.key, stalled->second);
  else stalled->second.waited_since(waiting.since);
}

void StallReporter::ask_all(const std::string& key, StallCase& stalled) {
  stalled.asked(now_, ++round_);
  ask_children(0, key, round_, stalled.members());
  for (const int silent : stalled.silent()) ask_children(silent, key, round_, stalled.members());
}

// Those below which there is a member.
std::vector<int> StallReporter::ask_children(int rank, const std::string& key, std::int64_t round,
                                             const RankSet& members) {
  std::vector<int> asked;
  const std::string note = note_of(kAsk, key, [&](ByteWriter& rest) {
    rest.number(round);
    write_ranks(rest, members);
  });
  for (const int child : children_list(rank, size())) {
    if (!has_any_below(members, child)) continue;
    send_(child, note);
    asked.push_back(child);
  }
  return asked;
}

void StallReporter::asked(int from, const std::string& key, std::int64_t round, RankSet members) {
  Report& report = reports_[key];
  report.asked = now_;
  report.next = now_ + ticks(kReportAgainOnceAsked);
  report.attempts = 0;
  const auto known = questions_.find(key);
  if (known != questions_.end() && known->second.round >= round) {
    Question& question = known->second;
    if (question.round > round || std::count(question.askers.begin(), question.askers.end(), from) > 0)
      return;
    question.askers.push_back(from);  // the root asks past a rank that then answers after all
    if (question.answered) answer(key, question);
    return;
  }
  const auto within = time_to_answer(height_of(rank_, size()));
  Question question{.round = round,
                    .members = std::move(members),
                    .askers = {from},
                    .awaited = {},
                    .asked = now_,
                    .deadline = now_ + within,
                    .heard = Standings(size())};
  question.awaited = ask_children(rank_, key, round, question.members);
  Question& kept = questions_.insert_or_assign(key, std::move(question)).first->second;
  if (kept.awaited.empty()) answer(key, kept);
}

// ---- Answers, up the tree.

Standings StallReporter::own_standing(const std::string& key, const RankSet& members) const {
  Standings own(size());
  if (members.test(static_cast<std::size_t>(rank_))) own.add(rank_, standing_of_(key));
  else own.others.set(static_cast<std::size_t>(rank_));
  return own;
}

void StallReporter::answered(int from, const std::string& key, std::int64_t round,
                             const Standings& standings) {
  if (rank_ == 0) {
    if (const auto stalled = cases_.find(key); stalled != cases_.end())
      stalled->second.answered(round, standings);
    return;
  }
  const auto found = questions_.find(key);
  if (found == questions_.end() || found->second.round != round) return;
  Question& question = found->second;
  question.heard.add(standings);
  std::erase(question.awaited, from);
  if (question.answered || question.awaited.empty()) answer(key, question);
}

void StallReporter::answer(const std::string& key, Question& question) {
  question.answered = true;
  Standings all = own_standing(key, question.members);
  all.add(question.heard);
  const std::string note = note_of(kAnswer, key, [&](ByteWriter& rest) {
    rest.number(question.round);
    for (const RankSet* set : {&all.ready, &all.missing, &all.left, &all.others}) write_ranks(rest, *set);
  });
  for (const int asker : question.askers) send_(asker, note);
}

// ---- The root's decisions. A ruling without anything: the operation is slow, not stalled.

std::optional<StallReporter::Ruling> StallReporter::judge(const std::string& key, StallCase& stalled) {
  stalled.answered(stalled.round(), own_standing(key, stalled.members()));
  for (const int silent : stalled.newly_silent(now_))
    ask_children(silent, key, stalled.round(), stalled.members());
  const auto found = stalled.result(now_);
  if (!found) return std::nullopt;
  if (found->left.any())
    return Ruling{.key = key, .left = static_cast<int>(found->left.find_first()), .ended_because = {}};
  if (found->missing.none()) return Ruling{.key = key, .ended_because = {}};
  const std::string text = stalled.describe(now_, *found, numbers_, hosts_);
  if (stalled.is_to_warn(now_)) log_warning("stalled: {}", text);
  if (stalled.is_asked_at_limit()) return Ruling{.key = key, .ended_because = with_limit(text, limits_)};
  if (stalled.is_to_ask_again(now_)) ask_all(key, stalled);
  return std::nullopt;
}

void StallReporter::decided(const std::string& key) {
  if (!cases_.empty()) cases_.erase(key);
  if (!reports_.empty()) reports_.erase(key);
  if (!questions_.empty()) questions_.erase(key);
}

void StallReporter::forget_old() {
  std::erase_if(reports_, [&](const auto& entry) { return now_ - entry.second.next > kForgetAfter; });
  std::erase_if(questions_, [&](const auto& entry) { return now_ - entry.second.asked > kForgetAfter; });
}

}  // namespace detail
}  // namespace kolo
