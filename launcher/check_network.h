// kolorun --check-network: measures on the hosts of the job, in the way the job will be started.
#pragma once

#include <string>
#include <vector>

#include <kolo/launcher/child.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/network_report.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// mpirun's arguments that start kolo-network-probe, which lies beside kolorun on every host.
std::vector<std::string> compose_network_probe(const Options& options, const Surroundings& found);

/// Takes about two seconds. Throws UnavailableError with mpirun's or the probe's own words if that failed or
/// took over 30 s.
NetworkReport check_network(const Options& options, const Surroundings& found, SignalQueue& signals);

}  // namespace kolo::launcher
