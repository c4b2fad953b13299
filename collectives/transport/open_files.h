// How many files and connections this process may have open.
#pragma once

#include <string>

namespace kolo::detail {

/// Lets the process open a connection to each of so many ranks of other hosts, beside its other files: raises
/// the soft limit where it is too low for that, and only then, as select() breaks above 1024. Returns what to
/// warn of where the hard limit is too low, as `1024 files may be open; 1500 ranks on other hosts may need
/// 1564 (ulimit -n)`; else "".
std::string allow_connections(int ranks_elsewhere);

}  // namespace kolo::detail
