// What kolorun --check-build prints.
#pragma once

#include <string>

namespace kolo::launcher {

/// Lines `name: value` on how kolo was built and on what this machine has. Runs `mpirun --version` if there
/// is an mpirun, and `kolo-inspect gpu`.
std::string check_build_text();

}  // namespace kolo::launcher
