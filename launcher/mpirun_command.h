// From what was asked and what was found here, such as the cores that a job may use, to the arguments of
// mpirun.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/base/cores.h>
#include <kolo/launcher/mpi.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// What the command depends on besides the options.
struct Surroundings {
  Mpi mpi;  // whose launcher is to start the ranks
  Cores cores;
  std::string hostname;
  bool root = false;
  bool terminal = false;               // kolorun's stdout: the ranks may rewrite a line there
  std::vector<std::string> variables;  // names in the environment
  std::vector<int> machines;           // for each host, which machine it is on; empty: each its own
};

/// Looks at this process: cores, user, environment. Contacts no host.
Surroundings find_surroundings();

/// The cores that a batch system gives each rank: one number where all ranks have as many.
struct AllottedCores {
  std::optional<int> of_each_rank;  // nothing: not known, or `least` and `most` differ
  int least = 0, most = 0;          // 0: not known
};
AllottedCores allotted_cores(const Options& options);

/// True if every rank runs here, as a child of the mpirun that is started here.
bool all_ranks_here(const Options& options, const Surroundings& found);

/// True if --mpi-args place and bind the ranks themselves.
bool args_bind(const Options& options);
/// The cores to bind each rank to; 0: as many as the batch system gives it; nothing: no rank is bound. Throws
/// InvalidArgumentError if --bind core asks for more cores than this machine has.
std::optional<int> cores_to_bind(const Options& options, const Surroundings& found);
/// What each rank runs: the program, or with --cluster a shell that first tells it its task.
std::vector<std::string> program_of_ranks(const Options& options, const Surroundings& found);

/// The arguments of mpirun, its name first and the program last. `tagged`: mpirun marks each line with its
/// rank. Throws InvalidArgumentError if -x names a variable that is not set, or if --bind core asks for more
/// cores than this machine has.
std::vector<std::string> compose_mpirun(const Options& options, const Surroundings& found, bool tagged);

/// The arguments that have mpirun say which rank fails, where nobody has asked for that and it can.
std::vector<std::string> state_notes_of_mpirun(const Options& options, const Surroundings& found);

/// `a slots=2` for each host.
std::string host_lines_of_mpirun(const Options& options, const Surroundings& found);

/// The variables that the ranks get from kolorun: by name, `NAME` or `NAME=VALUE`. Throws
/// InvalidArgumentError if -x names a variable that is not set.
std::map<std::string, std::string> exported_variables(const Options& options, const Surroundings& found);

/// The command for a job all of whose ranks are here: mpirun then listens on loopback alone, and ranks listen
/// where they like.
std::vector<std::string> listening_on_loopback(std::vector<std::string> mpirun);

/// The words as one line for a POSIX shell, which reads back exactly these words.
std::string shell_quote(const std::vector<std::string>& words);

}  // namespace kolo::launcher
