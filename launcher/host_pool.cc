#include <kolo/launcher/host_pool.h>

#include <fmt/core.h>

#include <algorithm>

namespace kolo::launcher {
namespace {

using std::chrono::seconds;

constexpr std::chrono::minutes kMemory{10};  // of losses and of killed ranks
constexpr std::ptrdiff_t kKilledMakeALoss = 2;

}  // namespace

HostPool::HostPool(const PoolRules& rules, const std::vector<Host>& listed)
    : rules_(rules), first_hosts_(static_cast<int>(listed.size())) {
  for (const Host& host : listed) entries_.push_back({.host = host, .next_cooling = rules_.least_cooling});
}

HostPool::Entry* HostPool::find(std::string_view host) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return is_same_host(entry.host.name, host); });
  return found == entries_.end() ? nullptr : &*found;
}

const HostPool::Entry* HostPool::find(std::string_view host) const {
  return const_cast<HostPool*>(this)->find(host);
}

void HostPool::see(const std::vector<SeenHost>& list) {
  std::vector<Entry> entries;
  for (const SeenHost& seen : list) {
    const Entry* const known = find(seen.host.name);
    entries.push_back(known ? *known : Entry{.host = seen.host, .next_cooling = rules_.least_cooling});
    entries.back().host = seen.host;
    entries.back().answers = seen.answers;
    entries.back().goes = entries.back().goes && seen.answers;
  }
  entries_ = std::move(entries);
}

void HostPool::lose(std::string_view host, Time now) {
  Entry* const entry = find(host);
  if (entry == nullptr) return;
  if (entry->last_loss != Time::min())
    for (auto quiet = now - entry->last_loss; quiet >= kMemory; quiet -= kMemory)
      entry->next_cooling = std::max(rules_.least_cooling, entry->next_cooling / 2);
  entry->cools_until = now + entry->next_cooling;
  entry->next_cooling = std::min(rules_.most_cooling, entry->next_cooling * 2);
  entry->last_loss = now;
}

void HostPool::drain(std::string_view host) {
  if (Entry* const entry = find(host)) entry->goes = true;
}

bool HostPool::note_killed_rank(std::string_view host, Time now) {
  Entry* const entry = find(host);
  if (entry == nullptr) return false;
  auto& killed = entry->killed_ranks;
  killed.push_back(now);
  while (now - killed.front() > kMemory) killed.pop_front();
  if (!kills_ranks(*entry, now)) return false;
  lose(host, now);
  return true;
}

bool HostPool::kills_ranks(const Entry& entry, Time now) {
  const auto is_recent = [&](Time killed) { return now - killed <= kMemory; };
  const auto& killed = entry.killed_ranks;
  return std::count_if(killed.begin(), killed.end(), is_recent) >= kKilledMakeALoss;
}

bool HostPool::can_do_without_killers(Time now) const {
  int ranks = 0;
  for (const Entry& entry : entries_)
    if (is_usable(entry, now) && !kills_ranks(entry, now)) ranks += entry.host.slots;
  return ranks >= rules_.min_ranks;
}

bool HostPool::is_usable(const Entry& entry, Time now) const {
  return entry.answers && !entry.goes && now >= entry.cools_until;
}

std::vector<Host> HostPool::best(Time now, int most_ranks) const {
  std::vector<Host> there;
  for (const Host& used : in_use_)
    if (const Entry* const entry = find(used.name); entry && is_usable(*entry, now))
      there.push_back(entry->host);
  for (const Entry& entry : entries_)
    if (is_usable(entry, now) && !contains_host(there, entry.host.name)) there.push_back(entry.host);
  // As many as at the start; what discovery adds leaves as many spares.
  const int count = static_cast<int>(there.size());
  const int wanted = std::max({1, first_hosts_ - rules_.spares, count - rules_.spares});
  there.resize(std::min(count, wanted));
  int left = std::min(most_ranks, rules_.max_ranks);
  std::vector<Host> chosen;
  for (Host host : there) {
    host.slots = std::min(host.slots, left);
    left -= host.slots;
    if (host.slots > 0) chosen.push_back(host);
  }
  return chosen;
}

std::vector<Host> HostPool::choose(Time now) {
  std::vector<Host> chosen = best(now, started_ ? rules_.max_ranks : rules_.first_ranks);
  if (total_slots(chosen) < rules_.min_ranks) return {};
  in_use_ = chosen;
  last_start_ = now;
  started_ = true;
  return chosen;
}

std::vector<Host> HostPool::growth(Time now) const {
  if (!started_ || now - last_start_ < rules_.grow_after) return {};
  const std::vector<Host> larger = best(now, rules_.max_ranks);
  std::vector<Host> added;
  bool is_whole = false;
  for (const Host& host : larger) {
    if (contains_host(in_use_, host.name)) continue;
    added.push_back(host);
    is_whole = is_whole || host.slots == find(host.name)->host.slots;
  }
  // A host in use that does not answer just now runs its ranks: it is no reason to move them.
  const bool keeps_all = larger.size() == in_use_.size() + added.size();
  return is_whole && keeps_all ? added : std::vector<Host>{};
}

int HostPool::available_ranks(Time now) const { return total_slots(best(now, rules_.max_ranks)); }

std::vector<Host> HostPool::listed() const {
  std::vector<Host> hosts;
  for (const Entry& entry : entries_) hosts.push_back(entry.host);
  return hosts;
}

bool HostPool::uses_all() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return contains_host(in_use_, entry.host.name); });
}

seconds HostPool::cools_for(std::string_view host, Time now) const {
  const Entry* const entry = find(host);
  if (entry == nullptr || now >= entry->cools_until) return seconds(0);
  return std::chrono::ceil<seconds>(entry->cools_until - now);
}

std::string HostPool::unusable(Time now) const {
  std::string why;
  for (const Entry& entry : entries_) {
    if (is_usable(entry, now)) continue;
    if (!why.empty()) why += ", ";
    why += entry.goes ? fmt::format("{} is about to go", entry.host.name)
           : now < entry.cools_until
               ? fmt::format("{} cools for {} s", entry.host.name, cools_for(entry.host.name, now).count())
               : fmt::format("{} does not answer", entry.host.name);
  }
  return why;
}

std::string HostPool::missing(Time now) const {
  const int ranks = rules_.min_ranks - available_ranks(now);
  const std::string why = unusable(now);
  return fmt::format("{} more rank{}{}{}", ranks, ranks == 1 ? "" : "s", why.empty() ? "" : ": ", why);
}

}  // namespace kolo::launcher
