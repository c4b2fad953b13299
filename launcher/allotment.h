// What a batch system has set aside for this job: hosts, ranks, cores and its number there.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/base/batch_job.h>
#include <kolo/launcher/hosts.h>

namespace kolo::launcher {

struct Allotment {
  std::string
      system;  // "Slurm", "PBS", "LSF", "Grid Engine", "Flux", or kMpiOperator for a hostfile variable
  std::string source;                 // the variable, or the command, that says how many ranks a host takes
  std::string also;                   // a second system that was seen and is not followed; "" for none
  std::vector<Host> hosts;            // never empty; slots are the ranks that the system means to run there
  int ranks = 0;                      // all slots, or SLURM_NTASKS where that is less
  std::vector<int> cores;             // of each host, as far as this job may use them; empty: not known
  std::optional<int> cores_per_rank;  // where the system counts a rank's cores: Slurm's -c, PBS's NCPUS
  std::optional<int> gpus_per_host;   // Slurm's SLURM_GPUS_ON_NODE
  int cpus_per_core = 1;              // what Slurm counts of one core: its hardware threads, or 1
  int groups = 1;                     // components of a heterogeneous job of Slurm's
  std::vector<int> group_of_host;     // of such a job; empty where a host is in two of them
  std::string
      job;  // as the commands of its system (batch_job_of) take it, or an operator's name for it; else ""
  int restarts = 0;  // how often the system has started this job again
};

/// True for a job of Slurm.
inline bool is_of_slurm(const std::optional<Allotment>& allotment) {
  return allotment && allotment->system == "Slurm";
}

using Environment = std::map<std::string, std::string>;
/// Runs a short program; its output, or nothing if it failed or took over 5 s.
using Ask = std::function<std::optional<std::string>(const std::vector<std::string>& command)>;

/// This process's variables.
Environment own_environment();

/// What the variables say; nothing outside of a batch system. The first of these is followed: a hostfile
/// variable of an MPI's, Slurm, PBS, LSF, Grid Engine, Flux. Looks no name up. Throws InvalidArgumentError
/// `<VARIABLE>="<value>" says no hosts; …` for a variable, or a file that it names, that does not parse.
std::optional<Allotment> find_allotment(const Environment& environment, const Ask& ask);

/// The job that has been allotted; an empty one where there is none. Inside a batch job a hostfile variable
/// of an MPI's names the hosts, and the job is that system's.
detail::BatchJob batch_job_of(const std::optional<Allotment>& allotment);

/// The cores that each rank has on each of `hosts` when `ranks` of them run there, in order; 0 where the
/// allotment does not tell. Hosts are found by their name.
std::vector<int> cores_of_ranks(const Allotment& allotment, const std::vector<Host>& hosts, int ranks);

/// What --show-allotment prints: a line for each host, or one JSON object with the command that starts the
/// ranks.
std::string allotment_text(const Allotment& allotment);
std::string allotment_json(const Allotment& allotment, const std::vector<std::string>& command);

}  // namespace kolo::launcher
