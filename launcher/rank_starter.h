// The ways of starting the ranks of a job, one class each: by Open MPI's mpirun, by srun, by hydra.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// What stands before a line of a rank, where lines are marked.
enum class LineMarks {
  tags,            // `[1,0]<stdout>:`, and also where a piece of a line starts (mpirun, hydra)
  tags_and_blank,  // `[1,0]<stdout>: ` (mpirun from Open MPI 5 on)
  labels           // ` 3: ` (srun)
};

/// Immutable; any thread.
class RankStarter {
 public:
  virtual ~RankStarter() = default;
  /// What it is called, in PATH and in messages.
  virtual std::string program() const = 0;
  /// The command that starts the job, the program last. tagged: each line is marked with its rank. Throws
  /// InvalidArgumentError for what cannot be started so.
  virtual std::vector<std::string> compose(const Options& options, const Surroundings& found,
                                           bool tagged) const = 0;
  /// The lines of a HostList for it.
  virtual std::string host_lines(const Options& options, const Surroundings& found) const = 0;
  virtual LineMarks marks(const Surroundings& found) const = 0;
  /// Arguments that have it say which rank fails (kStateNotes); empty where it cannot, or the user has asked.
  virtual std::vector<std::string> state_notes(const Options&, const Surroundings&) const { return {}; }
  /// True if ranks of this machine are its children: kolorun then reads and signals them itself. All others
  /// hand a SIGUSR1 on to the ranks.
  virtual bool has_ranks_as_children() const { return false; }
  /// How long after the loss of a rank it has to end the others, before it is ended itself. mpirun and hydra
  /// do so, within two seconds.
  virtual std::chrono::milliseconds time_to_end_survivors() const { return std::chrono::seconds(5); }
  /// How long after a SIGTERM to it it may take to end them, before it is killed. mpirun gives ranks one
  /// second between SIGTERM and SIGKILL.
  virtual std::chrono::milliseconds time_to_end() const { return std::chrono::seconds(3); }
  /// True if the ranks end where it is killed; else it has to end them itself, at a SIGTERM.
  virtual bool takes_ranks_with_it() const { return true; }
};

/// Launcher::automatic counts as mpirun.
const RankStarter& starter_of(Launcher launcher);

}  // namespace kolo::launcher
