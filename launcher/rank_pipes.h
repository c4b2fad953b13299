// A pipe for each stream of each rank on this machine.
#pragma once

#include <string>
#include <vector>

#include <kolo/launcher/child.h>
#include <kolo/launcher/output.h>

namespace kolo::launcher {

/// mpirun's own forwarding mixes the pieces of long lines from several ranks, and its --tag-output drops
/// output when many short lines come at once (8192 bytes for a tagged chunk of 4096). Ranks of this machine
/// therefore write into pipes of kolorun's, which they open as /proc/<kolorun>/fd/<n>: no file is left
/// behind, however kolorun ends.
class RankPipes {
 public:
  /// Throws ResourceExhaustedError if there can be no more pipes.
  explicit RankPipes(int ranks);

  struct Source {
    int rank;
    Stream stream;
    OwnedFd fd;  // non-blocking
  };
  const std::vector<Source>& sources() const { return sources_; }

  /// The command that makes a rank write into its pipes and then becomes `program`.
  std::vector<std::string> redirect(const std::vector<std::string>& program) const;

 private:
  std::vector<Source> sources_;  // by rank: stdout, stderr
};

}  // namespace kolo::launcher
