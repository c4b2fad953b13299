// Which launcher has started this process, and whether it was heard.
#pragma once

#include <optional>
#include <string>

namespace kolo::detail {

/// By the variables that it sets.
struct Launcher {
  std::string name;         // "Open MPI", "PMIx", "Slurm" or "PMI"
  std::optional<int> size;  // the number of ranks, where the launcher tells it
  std::optional<int> rank;  // of this process, likewise
};

/// In the order Open MPI, PMIx, Slurm, PMI; nothing for a process that was started by hand.
std::optional<Launcher> find_launcher();

/// Whether kolorun has started this process, or one that it comes from.
bool is_under_kolorun();
/// Whether the user's own terminal shows what is written to `descriptor`. mpirun gives its ranks a pseudo
/// terminal, whatever becomes of what they write.
bool is_own_terminal(int descriptor);
/// Whether a line on stdout may be written over: kolorun tells its ranks what its own stdout is.
bool rewrites_lines();

/// init() and shutdown() alone say so.
void set_initialised(bool yes);
/// The PID namespace of this process, as /proc names it; "" where /proc does not tell.
std::string pid_namespace();
/// The transports of Open MPI that kolorun chooses for ranks of one machine: neither listens on an address.
inline constexpr const char* kTransportsOfOneMachine = "^tcp,ofi";
/// kolorun leaves its own here for ranks of its machine.
inline constexpr const char* kNamespaceOfLauncher = "KOLO_PID_NAMESPACE";

/// Leaves a mark in the environment: what this process starts inherits the variables that make it a rank.
/// Main thread, since setenv is not safe beside other threads.
void mark_rank_process();
/// Throws FailedPreconditionError if the mark is that of another process with the same place in the same
/// job: this process was started by a rank, and MPI would wait for it for ever.
void refuse_child_of_rank();

/// Throws FailedPreconditionError, with the line to add, where a launcher has started several ranks and
/// init() was not called: each would train by itself, and all would seem to have done what was asked. who:
/// what would do so.
void require_init_under_launcher(const std::string& who);

}  // namespace kolo::detail
