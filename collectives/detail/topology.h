// From "who shares memory with whom" to local and cross ranks.
#pragma once

#include <span>

#include <kolo/core/base/process.h>

namespace kolo::detail {

/// leaders[r]: the lowest rank among those that share memory with rank r. Hosts are numbered by their
/// leaders. The host name is left empty.
ProcessInfo locate(int rank, std::span<const int> leaders);

}  // namespace kolo::detail
