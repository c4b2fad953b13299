#include <kolo/launcher/start_wait.h>

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include <kolo/core/base/child_program.h>
#include <kolo/launcher/agent.h>
#include <kolo/launcher/host_watch.h>
#include <kolo/launcher/srun_command.h>

namespace kolo::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr seconds kBetweenLooks{1};
constexpr seconds kBetweenWords{10};
constexpr int kMostPatience_ms = 500;  // of one poll

// `node2 (Connection refused), node3 (No route to host) and 5 others`.
std::string text_of(const std::vector<SeenHost>& hosts) {
  constexpr size_t kMostNamed = 3;
  const size_t named = hosts.size() > kMostNamed + 1 ? kMostNamed : hosts.size();
  std::string text;
  for (size_t i = 0; i < named; ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", hosts[i].host.name, hosts[i].why_not);
  return named == hosts.size() ? text : text + fmt::format(" and {} others", hosts.size() - named);
}

}  // namespace

std::optional<int> ended_by_signal(SignalQueue& signals, const Say& say) {
  while (const auto number = signals.next()) {
    if (*number == SIGCHLD || *number == SIGUSR2) continue;
    say(fmt::format("SIG{} has ended the waiting for hosts", sigabbrev_np(*number)));
    return detail::kBySignal + *number;
  }
  return std::nullopt;
}

std::optional<int> wait_for_start(const Options& options, const Surroundings& found, SignalQueue& signals,
                                  const Say& say) {
  if (options.start_timeout_s == 0 || options.hosts.empty() || all_ranks_here(options, found) ||
      starts_by_slurm(options))
    return std::nullopt;
  HostWatch watch({.listed = options.hosts,
                   .discover = "",
                   .slots_per_host = std::nullopt,
                   .every = kBetweenLooks,
                   .agent = agent_of(options, found)});
  const auto begin = Clock::now();
  auto next_word = begin;
  // Where the process that looks has ended the launcher says itself what is wrong.
  while (watch.fd() >= 0) {
    pollfd fds[] = {{signals.fd(), POLLIN, 0}, {watch.fd(), POLLIN, 0}};
    poll(fds, 2, kMostPatience_ms);
    if (const auto code = ended_by_signal(signals, say)) return code;
    if (!watch.read()) continue;
    std::vector<SeenHost> silent = watch.list();
    std::erase_if(silent, [](const SeenHost& seen) { return seen.answers; });
    if (silent.empty()) return std::nullopt;
    const auto now = Clock::now();
    if (now - begin >= std::chrono::duration<double>(options.start_timeout_s)) {
      say(fmt::format("{} {} not answer; gave up after {:g} s (--start-timeout)", text_of(silent),
                      silent.size() == 1 ? "does" : "do", options.start_timeout_s));
      return 1;
    }
    if (now < next_word) continue;
    const auto waited = std::chrono::duration_cast<seconds>(now - begin).count();
    say(fmt::format("waiting for {}{}", text_of(silent), waited > 0 ? fmt::format(", {} s", waited) : ""));
    next_word = now + kBetweenWords;
  }
  return std::nullopt;
}

}  // namespace kolo::launcher
