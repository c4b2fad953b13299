// Lists of hosts and of numbers as batch systems write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::launcher {

/// `a[1-3,07-09],b[1-2]-ib,c`, as Slurm and Flux write hosts: every name in order. A name may have several
/// brackets; the last one varies first. Empty for a text that is no such list, or for more than a million.
std::vector<std::string> expand_host_list(std::string_view text);

/// `2(x3),1`, Slurm's numbers for each host: 2, 2, 2, 1. All are at least 1. Empty for a text that is no such
/// list, or for more than a million.
std::vector<int> expand_counts(std::string_view text);

}  // namespace kolo::launcher
