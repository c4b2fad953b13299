// The hosts of a large job, in a file for the launcher that starts its ranks.
#pragma once

#include <optional>
#include <string>

#include <kolo/launcher/child.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// A file in memory, which the children of this process read while it lives. One on a disk would have to be
/// removed by a process that may be killed, and TMPDIR may be full.
class HostList {
 public:
  /// Nothing for up to 32 hosts, which a command line names so that a user can read it and use it again, and
  /// where the user has named a file. A word is at most 128 KiB long for the system, and srun takes a name
  /// for each rank: 100 hosts of 128 ranks fill it.
  static std::optional<HostList> of(const Options& options, const Surroundings& found);
  explicit HostList(const std::string& lines);
  const std::string& path() const { return path_; }

 private:
  OwnedFd fd_;
  std::string path_;
};

}  // namespace kolo::launcher
