// What kolorun --check-build prints.
#pragma once

#include <string>

#include <kolo/launcher/allotment.h>
#include <kolo/launcher/mpi.h>

namespace kolo::launcher {

/// Lines `name: value` on how kolo was built and on what this machine has. Runs `mpirun --version` if there
/// is an mpirun, `ompi_info`, `srun --mpi=list` and `kolo-inspect gpu`.
std::string check_build_text();

/// Its lines on which batch systems the MPI serves by itself, and which PMIs it and srun speak.
std::string batch_system_lines(const Mpi& mpi, const Ask& ask);

}  // namespace kolo::launcher
