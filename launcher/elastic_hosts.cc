#include <kolo/launcher/elastic_hosts.h>

#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <kolo/core/base/count_of.h>
#include <kolo/launcher/agent.h>
#include <kolo/launcher/machines.h>
#include <kolo/launcher/srun_command.h>

namespace kolo::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kBetweenWords{30};  // while it waits
constexpr int kBetweenLooks_ms = 500;
constexpr milliseconds kToLook{6000};  // a connection has 1 s, a command 5

std::optional<SlurmJob> slurm_of(const Options& options) {
  if (!starts_by_slurm(options)) return std::nullopt;
  return SlurmJob(options.allotment->job, options.allotment->restarts, ask_program);
}

WatchPlan plan_of(const Options& options, const Surroundings& found, const std::optional<SlurmJob>& slurm) {
  Agent agent = slurm ? slurm->agent(options.hosts) : agent_of(options, found);
  agent.hostname = found.hostname;
  return {.listed = options.hosts,
          .discover = options.elastic->discover,
          .slots_per_host = options.elastic->slots_per_host,
          .every = options.elastic->discover_every,
          .agent = std::move(agent)};
}

// `node3 is gone`, `node3, node4 are gone`.
std::string sentence(const std::vector<std::string>& names, std::string_view singular,
                     std::string_view plural) {
  return fmt::format("{} {}", fmt::join(names, ", "), names.size() == 1 ? singular : plural);
}

bool contains_host(const std::vector<std::string>& names, const std::string& name) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& other) { return is_same_host(other, name); });
}

std::vector<std::string> names_not_in(const std::vector<Host>& hosts, const std::vector<Host>& others) {
  std::vector<std::string> names;
  for (const Host& host : hosts)
    if (std::none_of(others.begin(), others.end(), [&](const Host& o) { return o.name == host.name; }))
      names.push_back(host.name);
  return names;
}

}  // namespace

ElasticHosts::ElasticHosts(const Options& options, const Surroundings& found, SignalQueue& signals, Say say)
    : elastic_(*options.elastic),
      signals_(signals),
      say_(std::move(say)),
      slurm_(slurm_of(options)),
      pool_(elastic_.rules, options.hosts),
      watch_(plan_of(options, found, slurm_)) {}

void ElasticHosts::see_list() {
  std::vector<SeenHost> list = watch_.list();
  std::erase_if(list, [&](const SeenHost& seen) { return left_job_.contains(seen.host.name); });
  pool_.see(list);
}

// Such a host may answer again, but Slurm starts nothing on it for this job. Asked only when it matters: the
// controller serves a whole site. True if one of `hosts` has left.
bool ElasticHosts::drop_hosts_that_left(const std::vector<Host>& hosts) {
  const auto there = slurm_ ? slurm_->hosts() : std::nullopt;
  if (!there) return false;
  std::vector<std::string> left;
  for (const Host& host : hosts)
    if (!contains_host(*there, host.name) && left_job_.insert(host.name).second) left.push_back(host.name);
  if (left.empty()) return false;
  warnings_.push_back(fmt::format("Slurm has taken {} out of this job", fmt::join(left, ", ")));
  see_list();
  return true;
}

// False, and it is told, where too few hosts are left that could come back.
bool ElasticHosts::may_wait_for_hosts() {
  drop_hosts_that_left(pool_.listed());
  for (const std::string& warning : take_warnings()) say_(warning);
  const int left = total_slots(pool_.listed());
  if (left_job_.empty() || !elastic_.discover.empty() || left >= elastic_.rules.min_ranks) return true;
  say_(fmt::format("{} {} left, --min-ranks is {}", count_of(left, "rank"), left == 1 ? "is" : "are",
                   elastic_.rules.min_ranks));
  return false;
}

std::vector<std::string> ElasticHosts::take_warnings() {
  std::vector<std::string> warnings = watch_.take_warnings();
  std::move(warnings_.begin(), warnings_.end(), std::back_inserter(warnings));
  warnings_.clear();
  return warnings;
}

std::optional<int> ElasticHosts::wait_for_hosts(std::vector<Host>& chosen) {
  const auto begin = Clock::now();
  const seconds limit =
      started_ ? elastic_.wait_for_hosts : elastic_.start_timeout.value_or(elastic_.wait_for_hosts);
  auto next_word = begin;
  has_waited_ = false;
  for (;;) {
    for (const std::string& warning : take_warnings()) say_(warning);
    const auto now = Clock::now();
    if (has_list_) chosen = pool_.choose(now);
    if (!chosen.empty() && started_ && drop_hosts_that_left(chosen)) continue;
    if (!chosen.empty()) return std::nullopt;
    if (has_list_ && now - begin >= limit) {
      const int there = pool_.available_ranks(now);
      say_(fmt::format("{} {} there, --min-ranks is {}; gave up after {} s", count_of(there, "rank"),
                       there == 1 ? "is" : "are", elastic_.rules.min_ranks, limit.count()));
      return 1;
    }
    if (has_list_ && now >= next_word) {
      if (started_ && !may_wait_for_hosts()) return 1;
      const std::string cause = cause_.empty() ? "" : std::exchange(cause_, "") + "; ";
      say_(fmt::format("{}waiting for {}", cause, pool_.missing(now)));
      next_word = now + kBetweenWords;
      has_waited_ = true;
    }
    pollfd fds[] = {{signals_.fd(), POLLIN, 0}, {watch_.fd(), POLLIN, 0}};
    poll(fds, 2, kBetweenLooks_ms);
    if (const auto code = ended_by_signal(signals_, say_)) return code;
    if (watch_.read()) see_list(), has_list_ = true;
  }
}

void ElasticHosts::tell_start(const std::vector<Host>& before, const std::vector<Host>& chosen) {
  const std::string where =
      fmt::format("{} on {}", count_of(total_slots(chosen), "rank"), names_of(chosen, ", "));
  const double standing = std::chrono::duration<double>(Clock::now() - standing_since_).count();
  if (!started_) {
    const std::string unusable = pool_.unusable(Clock::now());
    if (!unusable.empty() || has_waited_)
      say_(fmt::format("{}{}starting with {}", unusable, unusable.empty() ? "" : "; ", where));
  } else if (grows_) {
    const std::string step = last_step_ ? fmt::format(" after step {}", *last_step_) : "";
    const auto added = names_not_in(chosen, before);
    if (!added.empty())
      say_(fmt::format("{}; {} → {}{}", sentence(added, "is there", "are there"), total_slots(before),
                       count_of(total_slots(chosen), "rank"), step));
  } else if (!cause_.empty() || has_waited_ || before != chosen) {
    say_(fmt::format("{}going on with {} (restart {}, {:.1f} s)", cause_.empty() ? "" : cause_ + "; ", where,
                     restarts_, standing));
  }
}

void ElasticHosts::find_machines_of(const Options& options, Surroundings& found) {
  found.machines.clear();
  if (!needs_machines(options, found)) return;
  const bool known = std::all_of(options.hosts.begin(), options.hosts.end(),
                                 [&](const Host& host) { return machines_.count(host.name) > 0; });
  if (!known) {
    machines_.clear();
    const std::vector<int> numbers = find_machines(options, found, signals_);
    for (size_t host = 0; host < numbers.size(); ++host) machines_[options.hosts[host].name] = numbers[host];
    found.machines = numbers;
    return;
  }
  for (const Host& host : options.hosts) found.machines.push_back(machines_.at(host.name));
}

std::optional<int> ElasticHosts::prepare(Options& options, Surroundings& found) {
  const std::vector<Host> before = pool_.in_use();
  std::vector<Host> chosen;
  if (started_) ++restarts_;
  if (const auto code = wait_for_hosts(chosen)) return code;
  tell_start(before, chosen);
  added_ = started_ ? names_not_in(chosen, before) : std::vector<std::string>{};
  ranks_before_growth_ = total_slots(before);
  started_ = true;
  grows_ = false;
  cause_.clear();
  options.hosts = chosen;
  options.ranks = total_slots(chosen);
  find_machines_of(options, found);
  for (const Host& host : chosen) gone_.erase(host.name);
  if (elastic_.discover.empty() && pool_.uses_all()) watch_.rest();
  return std::nullopt;
}

bool ElasticHosts::see_news() {
  if (!watch_.read()) return false;
  see_list();
  return true;
}

std::string ElasticHosts::newcomers() const {
  const auto added = names_not_in(pool_.growth(Clock::now()), pool_.in_use());
  return added.empty() ? "" : sentence(added, "is there", "are there");
}

bool ElasticHosts::is_to_grow() {
  const auto added = pool_.growth(Clock::now());
  if (added.empty()) return false;
  return !drop_hosts_that_left(added) || !pool_.growth(Clock::now()).empty();
}

// What the launcher has told, and who of the others does not answer now.
std::vector<std::string> ElasticHosts::lost_hosts(const JobResult& result) {
  std::vector<std::string> lost = result.lost_hosts;
  const bool has_looked = watch_.look_now(lost, kToLook);
  if (has_looked) see_list();
  for (const SeenHost& seen : has_looked ? watch_.list() : std::vector<SeenHost>{}) {
    const bool is_used = contains_host(pool_.in_use(), seen.host.name);
    if (is_used && !seen.answers && !contains_host(lost, seen.host.name)) lost.push_back(seen.host.name);
  }
  std::vector<std::string> in_order;
  for (const Host& host : pool_.in_use())
    if (contains_host(lost, host.name)) in_order.push_back(host.name);
  return in_order;
}

ElasticHosts::Cause ElasticHosts::look_at(const JobResult& result, int stopped_exit_code) {
  const bool got_on = result.last_step && (!last_step_ || *result.last_step > *last_step_);
  const std::vector<std::string> added = std::exchange(added_, {});
  last_step_ = std::max(result.last_step, last_step_);
  standing_since_ = result.last_sign;
  lost_.clear();
  if (!result.going_hosts.empty() && result.exit_code == stopped_exit_code) {
    lost_ = result.going_hosts;
    for (const std::string& host : lost_) pool_.drain(host);
    cause_ = sentence(lost_, "is about to go", "are about to go");
    return Cause::notice;
  }
  if (result.asked_to_grow && result.exit_code == stopped_exit_code) {
    grows_ = true;
    return Cause::growth;
  }
  const auto lose = [&](const std::vector<std::string>& hosts, std::string cause) {
    for (const std::string& host : hosts) pool_.lose(host, Clock::now()), gone_.insert(host);
    cause_ = std::move(cause);
    return Cause::host;
  };
  if (lost_ = lost_hosts(result); !lost_.empty()) return lose(lost_, sentence(lost_, "is gone", "are gone"));
  if (const auto& hosts = result.hosts_without_start; !hosts.empty() && hosts.size() < pool_.in_use().size())
    return lose(hosts, sentence(hosts, "cannot start ranks", "cannot start ranks"));
  if (!added.empty() && !got_on && result.exit_code == kBadCommandLine) {
    const int ranks = total_slots(pool_.in_use());
    pool_.limit_ranks(ranks_before_growth_);
    cause_ = fmt::format("the program does not start with {}", count_of(ranks, "rank"));
    return Cause::host;
  }
  if (!added.empty() && !got_on)
    return lose(added, sentence(added, "has completed no step", "have completed no step"));
  const std::string& killed_on = result.host_of_killed_rank;
  if (killed_on.empty() || !pool_.note_killed_rank(killed_on, Clock::now())) return Cause::program;
  cause_ = fmt::format("{} has lost ranks twice in 10 minutes and is not used for {} s", killed_on,
                       pool_.cools_for(killed_on, Clock::now()).count());
  // Ranks that the kernel ends for their memory on every host would otherwise be started again for ever.
  return pool_.can_do_without_killers(Clock::now()) ? Cause::ranks : Cause::program;
}

bool ElasticHosts::is_ended_by_slurm() const {
  if (!slurm_ || !slurm_->is_ended_by({gone_.begin(), gone_.end()})) return false;
  say_("Slurm ends this job because a node failed; submit it with --no-kill");
  return true;
}

}  // namespace kolo::launcher
