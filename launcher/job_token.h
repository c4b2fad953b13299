// The secret by which the tasks of kolorun --cluster know each other.
#pragma once

#include <kolo/launcher/job_folders.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// Loopback keeps out other machines, not other users of this one. While this lives,
/// KOLO_CLUSTER_TOKEN_FILE names a file with a new secret of 32 bytes, which its owner alone can read (0600
/// in a folder of 0700). One at a time; the environment is this process's, which its children inherit.
class JobToken {
 public:
  /// Whether the job is a cluster on this machine whose user has chosen no credentials.
  static bool is_wanted(const Options& options, const Surroundings& found);
  /// Throws UnavailableError where there is no place for it.
  JobToken();
  ~JobToken();
  JobToken(const JobToken&) = delete;
  JobToken& operator=(const JobToken&) = delete;

 private:
  OwnFolder folder_;
};

}  // namespace kolo::launcher
