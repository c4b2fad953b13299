// Why mpirun could not start the ranks, in one sentence for its block of many lines.
#pragma once

#include <string>

#include <kolo/launcher/banner.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// What kept the ranks from starting: a host that ssh does not reach, a program or folder that a host does
/// not have, too few slots. "" where mpirun's words name none of those. hostname: of this machine.
std::string start_failure(const BannerReader& banner, const Options& options, const std::string& hostname);

}  // namespace kolo::launcher
