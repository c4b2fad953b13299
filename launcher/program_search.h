// Where the program of a job lies.
#pragma once

#include <string>

namespace kolo::launcher {

/// The folder of this executable.
std::string own_folder();

/// The first executable file `name` of PATH; "" if there is none.
std::string find_in_path(const std::string& name);

/// What to start for `name`: a path as it is; a bare name as it is if PATH has it, else with the folder of
/// kolorun before it. Throws NotFoundError if it is in neither place, or is no executable file, with the
/// nearest name beside kolorun.
std::string find_program(const std::string& name);

}  // namespace kolo::launcher
