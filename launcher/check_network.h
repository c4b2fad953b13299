// kolorun --check-network: measures on the hosts of the job, in the way the job will be started.
#pragma once

#include <string>
#include <vector>

#include <kolo/launcher/child.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// mpirun's arguments that start kolo-network-probe, which lies beside kolorun on every host.
std::vector<std::string> compose_network_probe(const Options& options, const Surroundings& found);

/// The probe's report, one JSON object. Takes about two seconds. Throws UnavailableError with mpirun's or the
/// probe's own words if that failed or took over 30 s, DataLossError if there is no report among its lines.
std::string check_network(const Options& options, const Surroundings& found, SignalQueue& signals);

/// The report among the lines that a job has written; "" if there is none.
std::string find_report(const std::string& lines);

/// For people: a line for each link, the scaling to expect, the warnings.
std::vector<std::string> network_lines(const std::string& report);

}  // namespace kolo::launcher
