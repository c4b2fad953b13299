// Lists of hosts and of numbers, and words in sentences, as batch systems and launchers write them.
#pragma once

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

/// What follows `words` in `text`, up to a blank or a line's end; "" where they are not in it.
std::string word_after(std::string_view text, std::string_view words);

}  // namespace kolo::launcher
