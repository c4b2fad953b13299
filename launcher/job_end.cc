#include <kolo/launcher/job_end.h>

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/child_program.h>
#include <kolo/launcher/start_failure.h>

namespace kolo::launcher {
namespace {

std::string name_of(int rank) { return rank < 0 ? std::string("a rank") : fmt::format("rank {}", rank); }

}  // namespace

void JobEnd::tell(const std::string& line) {
  if (first_line_.empty()) first_line_ = line;
  router_.say(line);
}

void JobEnd::tell_gone(int rank, const std::string& host) {
  const std::string step = router_.last_step() ? std::to_string(*router_.last_step()) : "unknown";
  tell(fmt::format("{} on {} is gone (last step {})", name_of(rank), host, step));
}

// srun numbers the ranks of each component of a heterogeneous job from 0. Below 0: not known.
int JobEnd::rank_of(int task, const std::string& host) const {
  if (options_.launcher != Launcher::srun || !options_.allotment || options_.allotment->groups == 1)
    return task;
  const std::vector<int>& groups = options_.allotment->group_of_host;
  const std::vector<int> counts = ranks_per_host(options_.hosts, options_.ranks);
  int first = 0;  // of the component
  for (size_t i = 0, next = 0; i < std::min(groups.size(), counts.size()); next += counts[i++]) {
    if (i > 0 && groups[i] != groups[i - 1]) first = static_cast<int>(next);
    if (is_same_host(options_.hosts[i].name, host)) return first + task;
  }
  return -1;
}

void JobEnd::tell_failed_rank(int exit_code, bool is_forced) {
  const BannerReader& banner = router_.banner();
  const auto& dead = banner.dead_rank();
  const auto tell_dead = [&] { tell_gone(rank_of(dead->rank, dead->host), dead->host); };
  if (dead && !banner.is_dead_with_others()) return tell_dead();
  if (!lost_host().empty()) return;  // the other hosts' ranks end because of that
  if (dead) return tell_dead();
  if (const auto& failed = banner.failed_rank())
    return tell(fmt::format(
        "{} on {} {}", name_of(failed->is_task ? rank_of(failed->rank, failed->host) : failed->rank),
        failed->host.empty() ? host_of(failed->rank) : failed->host,
        failed->how.empty() ? fmt::format("ended with exit code {}", failed->code) : failed->how));
  // mpirun's block that names the rank can be lost, with -q and after its block that there is one, too.
  const auto& first = banner.first_end();
  const bool is_told = !first_line_.empty() || !start_failure(banner, options_, hostname_).empty() ||
                       (!first && router_.launcher_has_spoken());
  const bool is_good = exit_code == 0 || exit_code == options_.stopped_exit_code;
  if (is_good || is_forced || is_told) return;
  if (first && first->by_signal) return tell_gone(first->rank, host_of(first->rank));
  const std::string who =
      first ? fmt::format("rank {} on {}", first->rank, host_of(first->rank)) : "kolorun: a rank";
  const bool has_how = first && !first->how.empty();
  router_.say(
      fmt::format("{} {}", who, has_how ? first->how : fmt::format("ended with exit code {}", exit_code)));
}

std::string JobEnd::host_of(int rank) const {
  const std::vector<int> counts = ranks_per_host(options_.hosts, options_.ranks);
  for (size_t host = 0; host < counts.size(); rank -= counts[host++])
    if (rank < counts[host]) return options_.hosts[host].name;
  return hostname_;
}

std::string JobEnd::lost_host() const {
  const BannerReader& banner = router_.banner();
  const bool has_dead_rank = banner.dead_rank() && !banner.is_dead_with_others();
  if (!banner.lost_daemon() && banner.lost_host().empty() && !has_dead_rank) return router_.silent_host();
  if (!banner.lost_daemon()) return banner.lost_host();
  int daemon = 0;
  for (const Host& host : options_.hosts)
    if (!is_this_machine(host.name, hostname_) && ++daemon == *banner.lost_daemon()) return host.name;
  return "";
}

void JobEnd::tell_lost_host() {
  const std::string lost = lost_host();
  if (lost.empty() || std::exchange(loss_told_, true)) return;
  const std::vector<int> counts = ranks_per_host(options_.hosts, options_.ranks);
  for (size_t host = 0, first = 0; host < counts.size(); first += counts[host++])
    for (int i = 0; is_same_host(options_.hosts[host].name, lost) && i < counts[host]; ++i)
      tell_gone(static_cast<int>(first) + i, lost);
}

bool JobEnd::tell_start_failure() {
  const std::string why = start_failure(router_.banner(), options_, hostname_);
  if (!why.empty()) tell("kolorun: " + why);
  return !why.empty();
}

int JobEnd::tell_effect(RankRequests::Effect effect, bool is_stop, int launchers_code) {
  using Effect = RankRequests::Effect;
  // The code by which an elastic job grows is kolorun's own: its user would see 0, as of a job that is done.
  const bool is_hidden = is_stop && options_.elastic && options_.elastic->hides_stopped_code;
  const int stopped_code = is_hidden ? 0 : options_.stopped_exit_code;
  if (effect == Effect::none) return launchers_code;
  if (effect == Effect::job_not_begun) {
    router_.say("kolorun: the request to stop came before the ranks had started");
    return is_hidden ? detail::kBySignal + SIGTERM : stopped_code;
  }
  const bool is_early = effect == Effect::ranks_ended_early;
  router_.say(fmt::format("kolorun: the request to stop has ended the ranks, which do not take it{}",
                          is_early ? ", or not yet" : ""));
  return is_early && stopped_code != 0 ? stopped_code : launchers_code;
}

int JobEnd::exit_code(int launchers_code) const {
  // srun returns the highest code, which may be that of a rank that it has ended itself.
  const BannerReader& banner = router_.banner();
  const auto& dead = banner.dead_rank();
  if (dead && dead->signal != 0) return detail::kBySignal + dead->signal;
  const bool has_code = !dead && banner.failed_rank() && banner.failed_rank()->code != 0;
  return has_code && launchers_code != 0 ? banner.failed_rank()->code : launchers_code;
}

int JobEnd::code_of_stop(int launchers_code) const {
  const bool was_killed =
      launchers_code == detail::kBySignal + SIGKILL || launchers_code == detail::kBySignal + SIGTERM;
  return was_killed && router_.banner().has_stopped() ? options_.stopped_exit_code : launchers_code;
}

std::string JobEnd::host_of_killed_rank() const {
  const auto& dead = router_.banner().dead_rank();
  const bool may_be_the_host =
      dead && !router_.banner().is_dead_with_others() && (dead->signal == SIGKILL || dead->signal == SIGBUS);
  return may_be_the_host ? dead->host : "";
}

std::vector<std::string> JobEnd::hosts_without_start() const {
  const BannerReader& banner = router_.banner();
  std::vector<std::string> names;
  for (const Host& host : options_.hosts) {
    const bool is_named = banner.unreachable().find(host.name) != std::string::npos ||
                          (banner.missing() && is_same_host(banner.missing()->host, host.name));
    if (is_named && !is_this_machine(host.name, hostname_)) names.push_back(host.name);
  }
  return names;
}

}  // namespace kolo::launcher
