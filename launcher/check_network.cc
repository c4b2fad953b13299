#include <kolo/launcher/check_network.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/launcher/child.h>
#include <kolo/launcher/program_search.h>
#include <kolo/launcher/rank_starter.h>
#include <kolo/launcher/srun_command.h>

namespace kolo::launcher {
namespace {

constexpr std::chrono::seconds kLongest{30};

}  // namespace

std::vector<std::string> compose_network_probe(const Options& options, const Surroundings& found) {
  Options probe = options;
  probe.cluster.clear();
  probe.program = {own_folder() + "/kolo-network-probe"};
  return starter_of(launcher_of(found.mpi)).compose(probe, found, false);
}

NetworkReport check_network(const Options& options, const Surroundings& found, SignalQueue& signals) {
  const CapturedRun run = run_captured(compose_network_probe(options, found), kLongest, &signals);
  if (run.good) return parse_network_report(run.out);
  std::string words = run.err;
  while (!words.empty() && words.back() == '\n') words.pop_back();
  throw UnavailableError("the network could not be measured{}{}", words.empty() ? "" : ":\n",
                         words.empty() ? fmt::format(" within {} s", kLongest.count()) : words);
}

}  // namespace kolo::launcher
