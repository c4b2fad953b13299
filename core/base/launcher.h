// Which launcher has started this process, and whether it was heard.
#pragma once

#include <optional>
#include <string>

namespace kolo::detail {

/// By the variables that it sets.
struct Launcher {
  std::string name;         // "Open MPI", "PMIx", "Slurm" or "PMI"
  std::optional<int> size;  // the number of ranks, where the launcher tells it
};

/// In the order Open MPI, PMIx, Slurm, PMI; nothing for a process that was started by hand.
std::optional<Launcher> find_launcher();

/// init() and shutdown() alone say so.
void set_initialised(bool yes);

/// Throws FailedPreconditionError, with the line to add, where a launcher has started several ranks and
/// init() was not called: each would train by itself, and all would seem to have done what was asked. who:
/// what would do so.
void require_init_under_launcher(const std::string& who);

}  // namespace kolo::detail
