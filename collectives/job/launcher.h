// Which launcher started this process, by the variables that it sets.
#pragma once

#include <optional>
#include <string>

namespace kolo::detail {

struct Launcher {
  std::string name;         // "Open MPI", "PMIx", "Slurm" or "PMI"
  std::optional<int> size;  // the number of ranks, where the launcher tells it
};

/// In the order Open MPI, PMIx, Slurm, PMI; nothing for a process that was started by hand.
std::optional<Launcher> find_launcher();

}  // namespace kolo::detail
