// What a batch system has set aside for this job.
#pragma once

#include <optional>

namespace kolo::launcher {

/// The number of ranks that the environment's allocation is for; empty outside one. Slurm: SLURM_NTASKS, else
/// the sum of SLURM_TASKS_PER_NODE; PBS: the lines of $PBS_NODEFILE; LSF: LSB_DJOB_NUMPROC; Grid Engine:
/// NSLOTS. Throws InvalidArgumentError for a variable, or a file, that says no number of ranks.
std::optional<int> allotted_ranks();

}  // namespace kolo::launcher
