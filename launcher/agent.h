// What starts mpirun's and hydra's daemons on other hosts.
#pragma once

#include <kolo/launcher/host_probe.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// ssh, or the program that --mpi-args or the environment name for mpirun.
Agent agent_of(const Options& options, const Surroundings& found);

}  // namespace kolo::launcher
