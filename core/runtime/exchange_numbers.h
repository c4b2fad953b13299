// Numbers of all ranks, with all of their bits.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <kolo/core/runtime/group.h>

namespace kolo::detail {

/// Each rank's numbers, by rank; ranks may bring different counts. A collective call: blocks until all ranks
/// have called it. NaN and infinities travel as well, and no locale changes a number.
std::vector<std::vector<double>> allgather_numbers(Group& group, const std::vector<double>& own);

/// A name, which may hold any bytes, and its numbers.
using NamedNumbers = std::vector<std::pair<std::string, std::vector<double>>>;
/// The same for numbers with names, in the order in which a rank brings them.
std::vector<NamedNumbers> allgather_named(Group& group, const NamedNumbers& own);

}  // namespace kolo::detail
