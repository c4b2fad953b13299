// Which MPI kolo was built with, and whose launcher lies in PATH.
#pragma once

#include <string>
#include <string_view>

namespace kolo::launcher {

enum class MpiKind { unknown, open_mpi, mpich, intel };

struct Mpi {
  MpiKind kind = MpiKind::unknown;
  std::string version = {};  // as in 4.1.4; "" if it is not known
  /// `Open MPI 4.1.4`.
  std::string text() const;
  /// mpirun is prterun, which has other options than Open MPI's before version 5.
  bool has_prte() const { return kind == MpiKind::open_mpi && major_version() >= 5; }
  /// Hydra starts its ranks, by PMI.
  bool has_hydra() const { return kind == MpiKind::mpich || kind == MpiKind::intel; }
  int major_version() const;
  bool operator==(const Mpi&) const = default;
};

/// From a name and a version, or from what `mpirun --version` prints: `mpirun (Open MPI) 4.1.4`, `prterun
/// (PRRTE) 3.0.1`, hydra's and Intel's build details. Unknown for anything else.
Mpi parse_mpi(std::string_view text);

/// The one that kolo was built with, as its mpi.h says.
const Mpi& own_mpi();

/// True unless both are known and the launcher of one cannot start programs of the other.
bool can_start(const Mpi& launcher, const Mpi& program);

}  // namespace kolo::launcher
