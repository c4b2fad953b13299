// Folders of one job's own for what Open MPI keeps while it runs.
#pragma once

#include <string>
#include <vector>

#include <kolo/launcher/child.h>

namespace kolo::launcher {

/// One folder for Open MPI's session and one in /dev/shm for the memory that its ranks share. Open MPI names
/// both after host name and process id, which two containers can have in common. The destructor removes the
/// folders with all that is in them. The constructor removes what a job of this user left that was killed.
/// One thread.
class JobFolders {
 public:
  JobFolders();
  ~JobFolders();
  JobFolders(const JobFolders&) = delete;
  JobFolders& operator=(const JobFolders&) = delete;

  /// What tells mpirun of the folders. A folder that cannot be made is left out, and so is a setting that
  /// stands in `mpi_args` or that `variables` (names of the environment) hold.
  std::vector<std::string> settings(const std::vector<std::string>& mpi_args,
                                    const std::vector<std::string>& variables) const;

 private:
  struct Folder {
    std::string setting, path;
    OwnedFd lock;  // held while the job lives, so that no other kolorun takes the folder for a left one
  };
  std::vector<Folder> folders_;
};

}  // namespace kolo::launcher
