// From what was asked and what was found here to the arguments of hydra's mpiexec, of MPICH and Intel MPI.
#pragma once

#include <string>
#include <vector>

#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// Both have it under this name; mpiexec and mpirun may be another MPI's.
inline constexpr const char* kHydra = "mpiexec.hydra";

/// Its name first and the program last. Hydra hands the whole environment to all hosts. Ranks are bound where
/// all are here or --bind asks for it: which hosts are one machine is not looked for. Throws
/// InvalidArgumentError as compose_mpirun does, and for a hostfile that only mpirun understands.
std::string host_lines_of_hydra(const Options& options, const Surroundings& found);
std::vector<std::string> compose_hydra(const Options& options, const Surroundings& found, bool tagged);

}  // namespace kolo::launcher
