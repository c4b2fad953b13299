// The job as a step of Slurm's: the arguments of srun.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kolo/launcher/allotment.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// The one that the MPI brings along.
Launcher launcher_of(const Mpi& mpi);

/// srun, or mpirun or hydra as the MPI has it: what --launcher says, else srun where Slurm has allotted all
/// hosts of the job, srun can serve the MPI (`srun --mpi=list` names pmix, for MPICH pmi2), and neither
/// --mpi-args nor --cluster speak to mpirun. mpi: that of the ranks. Throws InvalidArgumentError for a
/// launcher that cannot start the job.
Launcher choose_launcher(const Options& options, const Ask& ask, const Mpi& mpi);

/// True if Slurm's daemons start the ranks, or mpirun's daemons, on the job's hosts; else ssh does, or
/// another agent. Once the launcher is chosen.
bool starts_by_slurm(const Options& options);

/// The arguments of srun behind `env` and the variables that kolorun sets, the program last. Ranks fill the
/// hosts in the order of mpirun. `tagged`: srun marks each line with its rank. Throws InvalidArgumentError as
/// compose_mpirun does.
std::vector<std::string> compose_srun(const Options& options, const Surroundings& found, bool tagged);

/// A line for each rank: srun takes a -w with a slash for a file of them.
std::string host_lines_of_srun(const Options& options, const Surroundings& found);

/// Of a line of srun's --label, as `12: text`: the rank, and where its text starts; −1 and 0 for a line of
/// srun's own.
std::pair<int, size_t> find_label(std::string_view line);

}  // namespace kolo::launcher
