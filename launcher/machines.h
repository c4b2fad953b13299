// Which of the hosts of a job are one machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/launcher/child.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// True if where ranks are bound depends on it: mpirun starts them on several hosts, and no --bind decides.
bool needs_machines(const Options& options, const Surroundings& found);

/// For each host the number of its machine: containers and network namespaces of one machine, known by its
/// boot id, have one number. Starts a small program on each host over mpirun, in the way the job will be
/// started. Empty if that failed, took over 15 s, or a signal came: the job itself will then say why.
std::vector<int> find_machines(const Options& options, const Surroundings& found, SignalQueue& signals);

/// From lines `[1,<host>]<stdout>:<boot id>`; empty unless there is one for each of the `hosts`.
std::vector<int> number_machines(std::string_view tagged_lines, int hosts);

}  // namespace kolo::launcher
